// Conversations, on a server with a chat template.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { choices, idle, run, setSampling, shoot, tokens, withPage } from "../browser.js";
import { chatTemplate, serve } from "../program.js";

export function chatTests() {
  describe("chat", () => {
    let server = null;
    before(async () => {
      server = await serve(["--chat-template", chatTemplate]);
    });
    after(() => server?.stop());

    test("a conversation goes on from its last reply until a new one begins", () =>
      withPage(server.url, async (page) => {
        assert.equal(await page.locator("#chat-hint").isVisible(), false);
        await page.locator('input[value="chat"]').check();
        await setSampling(page, { max_tokens: 24, seed: 2 });
        await page.locator("#prompt").fill("Who lives in the house?");
        const first = await run(page);
        assert.deepEqual(first.bodies[0].messages, [{ role: "user", content: "Who lives in the house?" }]);
        const reply = choices(first.answers[0]).map((choice) => choice.delta?.content ?? "").join("");
        assert.equal(await page.locator(".tokens").textContent(), reply);
        assert.equal(await page.locator("#prompt").inputValue(), "");

        await page.locator("#prompt").fill("And in the garden?");
        const second = await run(page, "#compare");
        const history = [
          { role: "user", content: "Who lives in the house?" },
          { role: "assistant", content: reply },
          { role: "user", content: "And in the garden?" },
        ];
        assert.deepEqual(second.bodies.map((body) => body.messages), [history, history]);
        assert.deepEqual(await page.locator(".said").allTextContents(), ["And in the garden?", "Who lives in the house?"]);
        await shoot(page, "chat");

        await page.locator("#clear").click();
        assert.equal(await page.locator(".panel").count(), 0);
        await page.locator("#prompt").fill("Hello");
        const third = await run(page);
        assert.equal(third.bodies[0].messages.length, 1);
      }));

    test("an answer that breaks off is not part of the conversation; its message can be sent again", () =>
      withPage(server.url, async (page) => {
        await page.locator('input[value="chat"]').check();
        await setSampling(page, { max_tokens: 8, seed: 2 });
        const event = (object) => `data: ${JSON.stringify(object)}\n\n`;
        const error = { message: "out of cache pages", type: "server_error", param: null, code: null };
        const body = event({ choices: [{ index: 0, delta: { content: "Half" }, finish_reason: null }] }) + event({ error });
        await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }), {
          times: 1,
        });
        await page.locator("#prompt").fill("Who lives in the house?");
        await run(page);
        assert.match(await page.locator(".panel .problem").textContent(), /gave up in the middle/);
        assert.equal(await page.locator("#prompt").inputValue(), "Who lives in the house?");
        assert.equal(await page.locator("#clear").isVisible(), false); // nothing was said yet

        const sent = page.waitForRequest((request) => request.method() === "POST");
        await page.locator(".panel .problem").getByRole("button", { name: "Try again" }).click();
        assert.deepEqual((await sent).postDataJSON().messages, [{ role: "user", content: "Who lives in the house?" }]);
        await tokens(page).first().waitFor();
        await idle(page);
        assert.equal(await page.locator("#prompt").inputValue(), "");
        assert.equal(await page.locator("#clear").isVisible(), true);
      }));
  });
}
