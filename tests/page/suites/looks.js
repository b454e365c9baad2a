// Narrow windows, light and dark, and whether the shades can be told apart and read.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseWay, run, setSampling, shoot, tokens, withPage } from "../browser.js";

// The relative luminance (WCAG) of a CSS colour, through a canvas, which knows every notation.
async function luminances(page, shares) {
  return page.evaluate((shares) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (colour) => {
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => {
        const value = byte / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const token = document.createElement("span");
    token.className = "token";
    document.body.append(token);
    const result = shares.map((share) => {
      token.style.setProperty("--share", share);
      const style = getComputedStyle(token);
      return { text: luminance(style.color), shade: luminance(style.backgroundColor) };
    });
    token.remove();
    return result;
  }, shares);
}

function contrast(a, b) {
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

export function looksTests(shared) {
  describe("looks", () => {
    for (const colorScheme of ["light", "dark"]) {
      test(`shades are legible and ordered by lightness, ${colorScheme}`, () =>
        withPage(
          shared.url,
          async (page) => {
            const scale = await luminances(page, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]);
            for (const { text, shade } of scale) assert.ok(contrast(text, shade) >= 4.5, JSON.stringify({ text, shade }));
            const direction = colorScheme === "light" ? -1 : 1;
            for (let i = 1; i < scale.length; i += 1) {
              assert.ok(direction * (scale[i].shade - scale[i - 1].shade) > 0, `step ${i}`);
            }
            assert.ok(contrast(scale[0].shade, scale.at(-1).shade) > 2, "the ends are too much alike");
          },
          { colorScheme },
        ));
    }

    test("dark", () =>
      withPage(
        shared.url,
        async (page) => {
          await setSampling(page, { max_tokens: 64, seed: 1 });
          await run(page, "#compare");
          const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
          assert.match(background, /^rgb\((\d|[1-3]\d), /);
          await page.mouse.move(2, 2);
          await tokens(page).nth(70).focus();
          await shoot(page, "dark");
        },
        { colorScheme: "dark" },
      ));

    test("a narrow window needs no sideways scrolling, and the tooltip stays inside", () =>
      withPage(
        shared.url,
        async (page) => {
          const fits = async (what) =>
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what);
          await fits("opened");
          await setSampling(page, { max_tokens: 48, seed: 1 });
          await chooseWay(page, "axes");
          await fits("settings open");
          await chooseWay(page, "budget");
          await page.locator("#ways > summary").click();
          await page.locator("#sampling > summary").click();
          await page.locator("#prompt").fill("Unbreakable".repeat(20));
          await run(page, "#compare");
          await fits("compared");
          for (const index of [0, 5, 11, 17]) {
            await tokens(page).nth(index).focus();
            const box = await page.locator("#tooltip").boundingBox();
            assert.ok(box.x >= 0 && box.x + box.width <= 360 && box.y >= 0, JSON.stringify(box));
          }
          await shoot(page, "narrow");
          await page.locator("#access > summary").click();
          await fits("API key open");
          const box = await page.locator("#access-form").boundingBox();
          assert.ok(box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
        },
        { viewport: { width: 360, height: 740 } },
      ));
  });
}
