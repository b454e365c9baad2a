// Whatever goes wrong stands in plain sight. Errors that the server makes come from it; those of the
// network, and those that need a full queue or a broken server, are put between it and the page.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseWay, idle, run, setSampling, shoot, tokens, withPage } from "../browser.js";

const problem = (page) => page.locator(".panel .problem");

const event = (object) => `data: ${JSON.stringify(object)}\n\n`;

// The answer to the next completion is `answer` instead.
async function answerInstead(page, answer) {
  await page.route("**/v1/completions", (route) => route.fulfill(answer), { times: 1 });
}

export function faultTests(shared) {
  describe("faults", () => {
    test("a value out of range: message, field, and the field marked", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { temperature: 3 });
        await page.locator("#sampling > summary").click(); // hidden again: the error must open it
        await run(page);
        const shown = await problem(page).textContent();
        assert.match(shown, /did not accept/);
        assert.match(shown, /field: temperature/);
        assert.match(shown, /status: 400/);
        assert.equal(await problem(page).getAttribute("role"), "alert");
        assert.equal(await page.locator("#temperature").getAttribute("aria-invalid"), "true");
        assert.equal(await page.locator("#temperature").isVisible(), true);
        await shoot(page, "error");

        await page.locator("#temperature").fill("0.5");
        await page.locator("#max_tokens").fill("8");
        await problem(page).getByRole("button", { name: "Try again" }).click();
        await tokens(page).first().waitFor();
        await idle(page);
        assert.equal(await problem(page).isVisible(), false);
        assert.equal(await page.locator("[aria-invalid]").count(), 0);
      }));

    test("an action that is none", () =>
      withPage(shared.url, async (page) => {
        await chooseWay(page, "fixed");
        await page.locator("#fixed").fill("k050");
        await run(page);
        assert.match(await problem(page).textContent(), /k050.*field: sol\.fixed/s);
        assert.equal(await page.locator("#fixed").getAttribute("aria-invalid"), "true");
      }));

    test("a prompt that does not fit", () =>
      withPage(shared.url, async (page) => {
        await page.locator("#prompt").fill("far too long ".repeat(2000));
        await run(page);
        assert.match(await problem(page).textContent(), /context_length_exceeded/);
      }));

    test("a failing comparison does not run its second half", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { temperature: 3 });
        const { bodies } = await run(page, "#compare");
        assert.equal(bodies.length, 1);
        assert.deepEqual(await page.locator(".panel .state").allTextContents(), ["not complete", "not run"]);
      }));

    test("a setting that is no number is not left out silently", () =>
      withPage(shared.url, async (page) => {
        await page.locator("#sampling > summary").click();
        await page.locator("#seed").focus();
        await page.keyboard.type("1e");
        let sent = 0;
        page.on("request", () => (sent += 1));
        await page.locator("#generate").click();
        await page.locator("#notice").waitFor();
        assert.match(await page.locator("#notice").textContent(), /not a number.*field: seed/s);
        assert.equal(await page.locator("#seed").getAttribute("aria-invalid"), "true");
        assert.equal(sent, 0);
      }));

    test("a full queue", () =>
      withPage(shared.url, async (page) => {
        const error = { message: "64 requests wait already", type: "rate_limit_error", param: null, code: "queue_full" };
        await answerInstead(page, { status: 429, headers: { "Retry-After": "7" }, json: { error } });
        await run(page);
        assert.match(await problem(page).textContent(), /busy.*64 requests wait already.*come back in 7 s/s);
      }));

    test("an error in the middle of a stream keeps what came before it", () =>
      withPage(shared.url, async (page) => {
        const choice = { index: 0, text: "Half", finish_reason: null, logprobs: null };
        const action = { token: 5, text: "Half", action: "k100-s100-q16", effective: true };
        const error = { message: "out of cache pages", type: "server_error", param: null, code: null };
        const body = event({ choices: [{ ...choice, sol: { actions: [action] } }] }) + event({ error });
        await answerInstead(page, { contentType: "text/event-stream", body });
        await run(page);
        assert.equal(await page.locator(".tokens").textContent(), "Half");
        assert.match(await problem(page).textContent(), /gave up in the middle.*out of cache pages/s);
        assert.equal(await page.locator(".panel .state").textContent(), "not complete");
      }));

    test("a stream that ends without its end", () =>
      withPage(shared.url, async (page) => {
        const body = event({ choices: [{ index: 0, text: "Half", finish_reason: null }] });
        await answerInstead(page, { contentType: "text/event-stream", body });
        await run(page);
        assert.match(await problem(page).textContent(), /broke off/);
      }));

    test("an answer that no server should give", () =>
      withPage(shared.url, async (page) => {
        await answerInstead(page, { status: 502, contentType: "text/html", body: "<b>Bad gateway</b>" });
        await run(page);
        assert.match(await problem(page).textContent(), /server failed.*502/s);
        assert.equal(await page.locator(".panel b").count(), 0);
      }));

    test("text is text, not markup", () =>
      withPage(shared.url, async (page) => {
        const text = '<img src=x onerror="document.title=1">';
        const body =
          event({ choices: [{ index: 0, text, finish_reason: "stop", sol: { actions: [{ token: 1, text, action: "k100-s100-q16", effective: true }] } }] }) +
          "data: [DONE]\n\n";
        await answerInstead(page, { contentType: "text/event-stream", body });
        await page.locator("#prompt").fill(text);
        await run(page);
        assert.equal(await page.locator(".tokens").textContent(), text);
        assert.equal(await page.locator(".panel img").count(), 0);
      }));
  });
}
