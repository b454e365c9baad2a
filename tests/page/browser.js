// One headless Chromium for all tests, and what tests do with the page again and again.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

const ACTION_MS = 20_000;
const screenshots = process.env.SOL_SCREENSHOTS;

let browser = null;

export async function launch() {
  browser = await chromium.launch({ executablePath: process.env.SOL_CHROMIUM ?? "/usr/bin/chromium" });
}

export async function close() {
  await browser?.close();
}

// Runs `use(page)` on a new page at `url` that has connected. Fails on errors in the page and on what its
// content security policy forbids; `ready: false` does not wait for the connection.
export async function withPage(url, use, { ready = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(ACTION_MS);
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.stack));
    page.on("console", (message) => {
      // Chromium logs every answer that is not 200; those are the tests' own business.
      const expected = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !expected) faults.push(message.text());
    });
    await page.addInitScript(copyAnswers);
    await page.goto(url);
    if (ready) await page.locator('#generate[aria-disabled="false"]').waitFor();
    await use(page);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
  }
}

export async function shoot(page, name) {
  if (!screenshots) return;
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: path.join(screenshots, `${name}.png`) });
}

export const tokens = (page) => page.locator(".tokens .token");

// Until nothing runs any more.
export const idle = (page) => page.locator("#stop").waitFor({ state: "hidden" });

// Presses `button` and waits for the end. Returns the requests' bodies and the answers as text (null for
// one that broke off).
export async function run(page, button = "#generate") {
  const bodies = [];
  const collect = (request) => request.method() === "POST" && bodies.push(request.postDataJSON());
  page.on("request", collect);
  await page.evaluate(() => (window.answers = []));
  await page.locator(button).click();
  await idle(page);
  page.off("request", collect);
  return { bodies, answers: await page.evaluate(() => Promise.all(window.answers)) };
}

// Keeps a copy of each answer in window.answers. (Playwright's own copy of a stream takes its bytes for
// Latin-1 where the type names no charset.)
function copyAnswers() {
  const original = window.fetch;
  window.answers = [];
  window.fetch = async (...request) => {
    const response = await original(...request);
    if (request[1]?.method === "POST") window.answers.push(response.clone().text().catch(() => null));
    return response;
  };
}

// The choices of a stream's events.
export function choices(stream) {
  return stream
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice("data: ".length)).choices?.[0])
    .filter((choice) => choice);
}

// The model's entry as the page sees it.
export async function modelOf(url) {
  const response = await fetch(`${url}/v1/models`);
  return (await response.json()).data[0];
}

export async function setSampling(page, values) {
  if (!(await page.locator("#sampling").evaluate((details) => details.open))) {
    await page.locator("#sampling > summary").click();
  }
  for (const [id, value] of Object.entries(values)) await page.locator(`#${id}`).fill(String(value));
}

// Opens the disclosure and chooses one of the ways to give a budget.
export async function chooseWay(page, way) {
  if (!(await page.locator("#ways").evaluate((details) => details.open))) {
    await page.locator("#ways > summary").click();
  }
  await page.locator(`input[name="way"][value="${way}"]`).check();
}
