// Requests to the server, and everything that can go wrong with them as one kind of error.

import { readEvents } from "./sse.js";

const KEY = "sol-api-key";

export const apiKey = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (key) => (key ? sessionStorage.setItem(KEY, key) : sessionStorage.removeItem(KEY)),
};

// `title` says what happened, `message` why (the server's own words where it answered); `param` names
// the field of the request that was wrong, `status` is HTTP's (0 without an answer), `retryAfter` in
// seconds.
export class ApiError extends Error {
  constructor(title, message, { status = 0, param = null, code = null, retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { title, status, param, code, retryAfter });
  }
}

function titleOf(status) {
  if (status === 400 || status === 413) return "The server did not accept the request";
  if (status === 401) return "The server wants an API key";
  if (status === 429) return "The server is busy";
  if (status === 503) return "The server is not ready";
  if (status >= 500) return "The server failed";
  return "The request failed";
}

function serverError(error, { status = 0, retryAfter = null, title = titleOf(status) } = {}) {
  const { message, param, code } = error ?? {};
  return new ApiError(title, message ?? `status ${status}, without an explanation`, {
    status, param, code, retryAfter,
  });
}

async function request(path, init = {}) {
  const headers = { ...init.headers };
  if (apiKey.get()) headers.Authorization = `Bearer ${apiKey.get()}`;
  let response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached", "Is sol serve still running?");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  throw serverError(body?.error, {
    status: response.status,
    retryAfter: Number.isFinite(seconds) ? seconds : null,
  });
}

// The first entry of /v1/models.
export async function fetchModel() {
  const response = await request("/v1/models");
  const list = await response.json().catch(() => null);
  if (!list?.data?.[0]?.sol) {
    throw new ApiError("This is not sol's server", "Its /v1/models does not describe a budget.");
  }
  return list.data[0];
}

// Yields {text, tokens, sol, finish} per event: new text, the actions of new tokens, and with the last
// one the account of the whole. Throws ApiError, or AbortError when `signal` fires.
export async function* generate(chat, body, signal) {
  const response = await request(chat ? "/v1/chat/completions" : "/v1/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...body, stream: true }),
    signal,
  });
  let ended = false;
  try {
    for await (const data of readEvents(response.body)) {
      if (data === "[DONE]") ended = true; // read on to the body's end: breaking off would abort the request
      if (ended) continue;
      const event = JSON.parse(data);
      if (event.error) throw serverError(event.error, { title: "The server gave up in the middle" });
      const choice = event.choices?.[0];
      if (!choice) continue;
      yield {
        text: (chat ? choice.delta?.content : choice.text) ?? "",
        tokens: choice.sol?.actions ?? [],
        sol: choice.sol?.steps === undefined ? null : choice.sol,
        finish: choice.finish_reason ?? null,
      };
    }
  } catch (error) {
    if (error instanceof ApiError || error.name === "AbortError") throw error;
    if (error instanceof SyntaxError) {
      throw new ApiError("The server's answer makes no sense", error.message);
    }
    throw brokenOff();
  }
  if (!ended) throw brokenOff();
}

function brokenOff() {
  return new ApiError("The connection broke off", "The text above is not complete.");
}
