// Opening, generating, looking at tokens, comparing, stopping.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { choices, idle, modelOf, run, setSampling, shoot, tokens, withPage } from "../browser.js";

// The text as shown, without the marks that only help the eye.
const shownText = (page) => page.locator(".tokens").first().textContent();

const shareOf = (token) => token.evaluate((element) => Number(element.style.getPropertyValue("--share")));

export function generateTests(shared) {
  describe("generate", () => {
    test("the page opens on the server's model", () =>
      withPage(shared.url, async (page) => {
        const model = await modelOf(shared.url);
        const line = await page.locator("#model").textContent();
        assert.ok(line.includes(model.id) && line.includes(model.sol.controller.name), line);
        assert.ok(line.includes(String(model.sol.context)), line);
        assert.equal(await page.locator('input[value="chat"]').isDisabled(), !model.sol.chat);
        assert.match(await page.locator("#chat-hint").textContent(), /no chat template/);
        await shoot(page, "open");
      }));

    test("tokens stream in, shaded by what they got, and the account stands beside the request", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 96, seed: 1 });
        await page.evaluate(() => {
          window.arrivals = [];
          const seen = () => window.arrivals.push(performance.now());
          const panels = document.getElementById("turns");
          new MutationObserver((changes) => {
            if (changes.some(({ target }) => target.className === "tokens")) seen();
          }).observe(panels, { childList: true, subtree: true });
        });
        const { bodies, answers } = await run(page);
        assert.equal(bodies.length, 1);
        assert.equal(bodies[0].stream, true);
        assert.equal(bodies[0].seed, 1);
        assert.equal(bodies[0].max_tokens, 96);
        assert.equal(bodies[0].sol.actions, true);
        assert.equal(bodies[0].sol.policy, "learned");
        const events = choices(answers[0]);
        assert.equal(await shownText(page), events.map((choice) => choice.text).join(""));
        assert.ok((await tokens(page).count()) > 20);
        const shares = new Set();
        for (const token of await tokens(page).all()) shares.add(await shareOf(token));
        assert.ok(shares.size > 1, "every token has the same shade");

        const { requested, realised, ms_per_token: ms, steps, seed } = events.at(-1).sol;
        const span = await page.evaluate(() => window.arrivals.at(-1) - window.arrivals[0]);
        assert.ok(span > 0.5 * ms * (steps - 1), `${steps} tokens of ${ms} ms came within ${span} ms`);
        const cell = (axis, column) => page.locator(`tr[data-axis="${axis}"] .${column}`).textContent();
        assert.equal(await cell("net", "asked"), bodies[0].sol.budget.toFixed(2));
        assert.equal(await cell("keep", "asked"), requested.keep.toFixed(2));
        assert.equal(await cell("net", "got"), realised.net.toFixed(3));
        assert.equal(await cell("keep", "got"), realised.keep.toFixed(3));
        assert.equal(await cell("prune", "got"), realised.prune.toFixed(3));
        assert.equal(await cell("bits", "got"), realised.bits.toFixed(2));
        assert.match(await page.locator(".cost strong").textContent(), /^[0-9.]+ ms$/);
        assert.match(await page.locator(".notes").textContent(), new RegExp(`seed ${seed}$`));
        assert.match(await page.locator("#status").textContent(), /^Done: \d+ tokens/);
        await shoot(page, "generate");
      }));

    test("a tooltip says what a token got, on hover and on keyboard focus", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 64, seed: 1 });
        const { answers } = await run(page);
        const actions = choices(answers[0]).flatMap((choice) => choice.sol?.actions ?? []);
        const tooltip = page.locator("#tooltip");
        const expectAction = async (action) => {
          await tooltip.waitFor();
          const [, keep, prune, bits] = /^k([0-9.]+)-s([0-9.]+)-q([0-9]+)$/.exec(action.action);
          const net = (keep / 100 + prune / 100 + bits / 16) / 3;
          const shown = await tooltip.locator(".number").allTextContents();
          assert.deepEqual(shown, [(keep / 100).toFixed(2), (prune / 100).toFixed(2), bits, net.toFixed(2)]);
        };

        await tokens(page).nth(3).hover();
        await expectAction(actions[3]);
        await shoot(page, "tooltip");
        await page.keyboard.press("Escape");
        await tooltip.waitFor({ state: "hidden" });
        await page.mouse.move(2, 2);

        // The text is one stop of the Tab key, entered from the control before it.
        await page.locator("#shade").focus();
        await page.keyboard.press("Tab");
        await expectAction(actions[0]);
        for (let i = 0; i < 5; i += 1) await page.keyboard.press("ArrowRight");
        await expectAction(actions[5]);
        const focused = page.locator(".token:focus");
        assert.equal(await focused.getAttribute("aria-describedby"), "tooltip");
        assert.notEqual(await focused.evaluate((token) => getComputedStyle(token).outlineStyle), "none");
        await page.keyboard.press("ArrowLeft");
        await expectAction(actions[4]);
        await page.keyboard.press("ArrowDown");
        const top = async () => (await page.locator(".token:focus").boundingBox()).y;
        const below = await top();
        await page.keyboard.press("ArrowUp");
        assert.ok((await top()) < below);
        await page.keyboard.press("Home");
        await expectAction(actions[0]);
        await page.keyboard.press("Tab");
        await tooltip.waitFor({ state: "hidden" });
      }));

    test("tokens before there is anything to leave out are told apart", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 32, seed: 1 });
        await page.locator("#prompt").fill("Once");
        const { answers } = await run(page);
        const actions = choices(answers[0]).flatMap((choice) => choice.sol?.actions ?? []);
        const uncounted = actions.filter((action) => !action.effective && action.text !== "").length;
        assert.ok(uncounted > 0);
        assert.equal(await page.locator(".tokens .uncounted").count(), uncounted);
        await page.locator(".tokens .uncounted").first().hover();
        assert.match(await page.locator("#tooltip").textContent(), /not counted/);
      }));

    test("shades can follow one axis", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 48, seed: 1 });
        const { answers } = await run(page);
        const action = choices(answers[0]).flatMap((choice) => choice.sol?.actions ?? [])[7].action;
        await page.locator("#shade").selectOption("bits");
        assert.equal(await shareOf(tokens(page).nth(7)), Number(/q([0-9]+)$/.exec(action)[1]) / 16);
        assert.equal(await page.locator("#scale-high").textContent(), "16");
        await page.locator("#shade").selectOption("keep");
        assert.equal(await shareOf(tokens(page).nth(7)), Number(/^k([0-9.]+)/.exec(action)[1]) / 100);
      }));

    test("the same prompt runs densely and with the budget, one after the other, with one seed", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 64, temperature: 0.7 });
        const { bodies, answers } = await run(page, "#compare");
        assert.equal(bodies.length, 2);
        const [dense, budget] = bodies;
        assert.deepEqual(dense.sol, { actions: true });
        assert.ok(budget.sol.budget > 0);
        assert.ok(Number.isInteger(dense.seed), "no seed was drawn");
        assert.equal(dense.seed, budget.seed);
        assert.equal(dense.temperature, 0.7);
        assert.equal(dense.prompt, budget.prompt);
        assert.equal(await page.locator(".panel").count(), 2);
        assert.deepEqual(await page.locator(".panel h3").allTextContents(), ["Dense", `Budget ${budget.sol.budget.toFixed(2)}`]);
        const nets = await page.locator('tr[data-axis="net"] .got').allTextContents();
        assert.equal(nets[0], "1.000");
        assert.equal(nets[1], choices(answers[1]).at(-1).sol.realised.net.toFixed(3));
        assert.match(await page.locator(".comparison").textContent(), /ms per token instead of .*texts/);

        await setSampling(page, { max_tokens: 80, temperature: 0.8, seed: 1 });
        await page.locator("#sampling > summary").click();
        await run(page, "#compare");
        await page.setViewportSize({ width: 1280, height: 940 });
        await page.locator(".panel").nth(1).locator(".token").nth(45).hover();
        await page.locator("#tooltip").waitFor();
        await shoot(page, "compare");
      }));

    test("a run can be stopped in the middle, and the next one goes on as usual", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 1000, seed: 3 });
        await page.locator("#generate").click();
        await tokens(page).nth(4).waitFor();
        await page.locator("#stop").click();
        await idle(page);
        assert.equal(await page.locator(".panel .state").textContent(), "stopped");
        const kept = await tokens(page).count();
        assert.ok(kept >= 5 && kept < 1000, `${kept} tokens`);
        await shoot(page, "stopped");
        assert.match(await page.locator("#status").textContent(), /^Stopped/);
        assert.equal(await page.locator("#generate").evaluate((button) => button === document.activeElement), true);
        await setSampling(page, { max_tokens: 16 });
        await run(page);
        assert.match(await page.locator("#status").textContent(), /^Done/);
      }));

    test("everything can be reached and done with the keyboard", () =>
      withPage(shared.url, async (page) => {
        const reached = [];
        for (let i = 0; i < 30; i += 1) {
          await page.keyboard.press("Tab");
          const id = await page.evaluate(() => document.activeElement.id || document.activeElement.parentElement.id || document.activeElement.value);
          if (reached.includes(id)) break;
          reached.push(id);
        }
        for (const id of ["access", "completion", "prompt", "generate", "compare", "budget", "ways", "sampling", "shade"]) {
          assert.ok(reached.includes(id), `${id} is not among ${reached}`);
        }
        await setSampling(page, { max_tokens: 8 });
        await page.locator("#prompt").focus();
        await page.keyboard.press("Control+Enter");
        await tokens(page).first().waitFor();
        await idle(page);
      }));
  });
}
