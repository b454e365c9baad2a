// The dial: what the controls ask the server for.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, test } from "node:test";
import { chooseWay, modelOf, run, setSampling, shoot, withPage } from "../browser.js";
import { controller, serve } from "../program.js";

const request = async (page, button) => (await run(page, button)).bodies.at(-1).sol;

// A copy of the shipped controller that was never measured, for `use(directory)`.
async function withUnmeasured(use) {
  const directory = mkdtempSync(path.join(tmpdir(), "sol-page-"));
  try {
    cpSync(controller, directory, { recursive: true });
    const file = path.join(directory, "controller.json");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), frontier: [] }));
    await use(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

// As a server with a controller for times describes itself.
async function describeTimed(page, changes = {}) {
  await page.route("**/v1/models", async (route) => {
    const list = await (await route.fetch()).json();
    const { sol } = list.data[0];
    Object.assign(sol, { budget: null, controller: { ...sol.controller, timed: true } }, changes);
    await route.fulfill({ json: list });
  });
  await page.reload();
  await page.locator('#generate[aria-disabled="false"]').waitFor();
}

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

    test("a controller that was never measured takes averages, and the page begins with them", () =>
      withUnmeasured(async (directory) => {
        const server = await serve(["--latency", "off"], { controllerDir: directory });
        try {
          await withPage(server.url, async (page) => {
            assert.equal((await modelOf(server.url)).sol.budget, null);
            assert.equal(await page.locator("#budget").isDisabled(), true);
            assert.equal(await page.locator('input[name="way"][value="budget"]').isDisabled(), true);
            assert.match(await page.locator("#no-budget").textContent(), /no validation frontier/);
            await setSampling(page, { max_tokens: 8 });
            const { bodies, answers } = await run(page);
            assert.deepEqual(Object.keys(bodies[0].sol), ["keep", "prune", "bits", "policy", "actions"]);
            assert.equal(bodies[0].sol.policy, "learned");
            assert.match(answers[0], /"finish_reason":"(length|stop)"/);
            assert.equal(await page.locator(".panel .problem").isVisible(), false);
          });
        } finally {
          await server.stop();
        }
      }));

    test("a controller for times takes a time, and the page begins with one", () =>
      withPage(shared.url, async (page) => {
        await describeTimed(page);
        assert.equal(await page.locator("#budget").isDisabled(), true);
        assert.match(await page.locator("#no-budget").textContent(), /trained for times/);
        assert.equal(await page.locator("#policy").inputValue(), "learned");
        await setSampling(page, { max_tokens: 8 });
        const { ms_per_token: ms, policy } = await request(page);
        const { fastest_ms: fastest, dense_ms: dense } = (await modelOf(shared.url)).sol.latency;
        assert.ok(ms > 0.9 * fastest && ms < 1.1 * dense, `${ms} for ${fastest}..${dense}`);
        assert.equal(policy, "learned");
        assert.equal(await page.locator(".panel .problem").isVisible(), false);
        // Averages are for the fixed policy alone.
        await chooseWay(page, "axes");
        assert.equal(await page.locator("#policy").inputValue(), "fixed");
        assert.equal(await page.locator("#policy").isDisabled(), true);
        assert.equal((await request(page)).policy, "fixed");
        await chooseWay(page, "time");
        assert.equal(await page.locator("#policy").inputValue(), "learned");

        await page.unroute("**/v1/models");
        await describeTimed(page, { latency: null });
        assert.deepEqual(await request(page), { fixed: "k050-s070-q8", actions: true });
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
