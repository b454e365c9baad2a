// Servers that want a key, have no controller, or go away.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseWay, run, setSampling, tokens, withPage } from "../browser.js";
import { serve } from "../program.js";

export function accessTests(shared) {
  describe("access", () => {
    test("a server that loads its model is waited for", () =>
      withPage(
        shared.url,
        async (page) => {
          const error = { message: "the model is loading", type: "server_error", param: null, code: null };
          await page.route("**/v1/models", (route) => route.fulfill({ status: 503, json: { error } }), { times: 1 });
          await page.reload();
          await page.getByText("the model is loading").waitFor();
          assert.equal(await page.locator("#generate").getAttribute("aria-disabled"), "true");
          await page.locator('#generate[aria-disabled="false"]').waitFor();
          assert.equal(await page.locator("#notice").isVisible(), false);
        },
      ));

    test("a server that wants an API key is asked with one, and its going away is said", async () => {
      const server = await serve(["--api-key", "open-sesame"]);
      let running = true;
      try {
        await withPage(
          server.url,
          async (page) => {
            await page.locator("#notice").waitFor();
            assert.match(await page.locator("#notice").textContent(), /API key.*status: 401/s);
            assert.equal(await page.locator("#key").evaluate((field) => field === document.activeElement), true);
            await page.keyboard.type("open-sesame");
            await page.keyboard.press("Enter");
            await page.locator('#generate[aria-disabled="false"]').waitFor();
            assert.equal(await page.locator("#notice").isVisible(), false);
            await setSampling(page, { max_tokens: 8 });
            await run(page);
            assert.ok((await tokens(page).count()) > 0);

            await page.reload();
            await page.locator('#generate[aria-disabled="false"]').waitFor();
            running = false;
            await server.stop();
            await run(page);
            assert.match(await page.locator(".panel .problem").textContent(), /cannot be reached/);
          },
          { ready: false },
        );
      } finally {
        if (running) await server.stop();
      }
    });

    test("without a controller the fixed policy spends the budget, and the page says why", async () => {
      const server = await serve([], { controllerDir: null });
      try {
        await withPage(server.url, async (page) => {
          assert.match(await page.locator("#model").textContent(), /no controller/);
          await chooseWay(page, "axes");
          assert.deepEqual(await page.locator("#policy option").allTextContents(), ["the fixed policy"]);
          assert.match(await page.locator("#policy-hint").textContent(), /no controller/);
          await chooseWay(page, "budget");
          await setSampling(page, { max_tokens: 16 });
          const { bodies } = await run(page);
          assert.equal(bodies[0].sol.policy, "fixed");
          assert.ok((await tokens(page).count()) > 0);
        });
      } finally {
        await server.stop();
      }
    });
  });
}
