// Drives the page of `sol serve` in a headless Chromium, against the real program.
// SOL_BINARY: the program (default: build/sol); SOL_CHROMIUM: the browser (default: Debian's);
// SOL_SCREENSHOTS: a directory for screenshots (default: none are taken).

import { after, before } from "node:test";
import { close, launch } from "./browser.js";
import { serve } from "./program.js";
import { accessTests } from "./suites/access.js";
import { budgetTests } from "./suites/budget.js";
import { chatTests } from "./suites/chat.js";
import { faultTests } from "./suites/faults.js";
import { generateTests } from "./suites/generate.js";
import { looksTests } from "./suites/looks.js";
import { moduleTests } from "./suites/modules.js";

// One server and one browser for all; suites that need other options start a server of their own.
const shared = { url: "" };
let server = null;

before(async () => {
  server = await serve();
  shared.url = server.url;
  await launch();
});

after(async () => {
  await close();
  await server?.stop();
});

for (const suite of [moduleTests, generateTests, budgetTests, faultTests, looksTests, chatTests, accessTests]) {
  suite(shared);
}
