// The dial: what the controls ask the server for.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseWay, modelOf, run, setSampling, shoot, withPage } from "../browser.js";

const request = async (page, button) => (await run(page, button)).bodies.at(-1).sol;

export function budgetTests(shared) {
  describe("budget", () => {
    test("the slider covers the server's range; its end is dense", () =>
      withPage(shared.url, async (page) => {
        const { low, high } = (await modelOf(shared.url)).sol.budget;
        await setSampling(page, { max_tokens: 8 });
        const slider = page.locator("#budget");
        const shown = page.locator("#dial-value");
        await slider.focus();

        await page.keyboard.press("Home");
        const lowest = Number(await shown.textContent());
        assert.ok(lowest >= low - 0.001 && lowest < low + 0.011, `${lowest} for ${low}`);
        assert.equal((await request(page)).budget, lowest);

        await slider.focus();
        await page.keyboard.press("ArrowRight");
        assert.equal(await shown.textContent(), (lowest + 0.01).toFixed(2));
        assert.equal(await slider.getAttribute("aria-valuetext"), `${(lowest + 0.01).toFixed(2)} net keep-rate`);

        await page.keyboard.press("End");
        assert.equal(await shown.textContent(), "dense");
        assert.equal(await page.locator("#compare").getAttribute("aria-disabled"), "true");
        assert.deepEqual(await request(page), { actions: true });
        assert.equal(await page.locator('tr[data-axis="net"] .got').textContent(), "1.000");

        await slider.focus();
        await page.keyboard.press("ArrowLeft");
        const highest = Number(await shown.textContent());
        assert.ok(highest <= high + 0.001 && highest > high - 0.011, `${highest} for ${high}`);
        assert.equal(await page.locator("#compare").getAttribute("aria-disabled"), "false");
      }));

    test("more budget gives more", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 96, seed: 5 });
        const realised = async (key) => {
          await page.locator("#budget").focus();
          await page.keyboard.press(key);
          if (key === "End") await page.keyboard.press("ArrowLeft");
          await run(page);
          return Number(await page.locator('tr[data-axis="net"] .got').textContent());
        };
        assert.ok((await realised("Home")) + 0.1 < (await realised("End")));
      }));

    test("each axis has an average of its own, within its range", () =>
      withPage(shared.url, async (page) => {
        const { axes } = (await modelOf(shared.url)).sol;
        await setSampling(page, { max_tokens: 48, seed: 1 });
        await chooseWay(page, "axes");
        for (const [name, { low, high }] of Object.entries(axes)) {
          const slider = page.locator(`#axis-${name}`);
          assert.equal(Number(await slider.getAttribute("min")), low);
          assert.equal(Number(await slider.getAttribute("max")), high);
          await slider.focus();
          await page.keyboard.press(name === "keep" ? "Home" : "End");
        }
        await page.locator("#policy").selectOption("fixed");
        const sol = await request(page);
        assert.deepEqual(sol, {
          keep: axes.keep.low, prune: axes.prune.high, bits: axes.bits.high, policy: "fixed", actions: true,
        });
        assert.equal(await page.locator('tr[data-axis="keep"] .got').textContent(), axes.keep.low.toFixed(3));
        assert.equal(await page.locator('tr[data-axis="prune"] .got').textContent(), axes.prune.high.toFixed(3));
        await shoot(page, "axes");
      }));

    test("one action for every token", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 24, seed: 1 });
        await chooseWay(page, "fixed");
        await page.locator("#fixed").fill("k050-s070-q8");
        assert.deepEqual(await request(page), { fixed: "k050-s070-q8", actions: true });
        const got = (axis) => page.locator(`tr[data-axis="${axis}"] .got`).textContent();
        assert.deepEqual([await got("keep"), await got("prune"), await got("bits")], ["0.500", "0.700", "8.00"]);
      }));

    test("a time, and what became of it", () =>
      withPage(shared.url, async (page) => {
        await setSampling(page, { max_tokens: 24, seed: 1 });
        await chooseWay(page, "time");
        await page.locator("#ms").fill("0.01");
        const sol = await request(page);
        assert.equal(sol.ms_per_token, 0.01);
        assert.match(await page.locator(".cost").textContent(), /target of 0\.010 ms is not met: between/);
        await page.locator("#ms").fill("10000");
        await run(page);
        assert.match(await page.locator(".cost").textContent(), /target of 10000 ms is met/);
      }));

    test("moving the slider takes back another way", () =>
      withPage(shared.url, async (page) => {
        await chooseWay(page, "fixed");
        await page.locator("#budget").focus();
        await page.keyboard.press("ArrowRight");
        assert.equal(await page.locator('input[name="way"][value="budget"]').isChecked(), true);
        await page.locator("#max_tokens").evaluate((input) => (input.value = 8));
        assert.ok((await request(page)).budget > 0);
      }));
  });
}
