// The page's parsers as served, on inputs that a server seldom sends.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withPage } from "../browser.js";

export function moduleTests(shared) {
  describe("modules", () => {
    test("events survive every split of their bytes", () =>
      withPage(shared.url, async (page) => {
        const differing = await page.evaluate(async () => {
          const { readEvents } = await import("/sse.js");
          const text = ': hello\r\n\r\ndata: {"a": "é🌞"}\n\ndata:one\ndata: two\r\n\r\nevent: x\ndata: [DONE]\n\ndata: cut';
          const bytes = new TextEncoder().encode(text);
          const expected = JSON.stringify(['{"a": "é🌞"}', "one\ntwo", "[DONE]"]);
          const differing = [];
          for (let at = 0; at <= bytes.length; at += 1) {
            const body = new ReadableStream({
              start(controller) {
                controller.enqueue(bytes.slice(0, at));
                controller.enqueue(bytes.slice(at));
                controller.close();
              },
            });
            const events = [];
            for await (const data of readEvents(body)) events.push(data);
            if (JSON.stringify(events) !== expected) differing.push([at, events]);
          }
          return differing;
        });
        assert.deepEqual(differing, []);
      }));

    test("text and tokens join, whatever their borders", () =>
      withPage(shared.url, async (page) => {
        const joined = await page.evaluate(async () => {
          const { Pieces } = await import("/pieces.js");
          const join = (...events) => {
            const pieces = new Pieces();
            const all = events.flatMap(([text, ...tokens]) => pieces.push(text, tokens.map((each) => ({ text: each }))));
            return [...all, ...pieces.end()].map(({ text, tokens }) => [text, tokens.length]);
          };
          return {
            plain: join([" a", " a"], ["\n", "\n"]),
            severalInOne: join([" a b", " a", " b"]),
            unfinished: join(["", ""], ["", ""], ["🌞", "🌞"], ["x", "x"]),
            neverFinished: join(["a", "a"], ["", ""]),
            heldBack: join(["", "ST"], ["STAR", "AR"]),
            cut: join(["ab", "ab"], ["c", "c STOP"]),
            respelled: join(["a", " a"], ["b", "b"]),
            withoutTokens: join(["a"], ["b"]),
          };
        });
        assert.deepEqual(joined, {
          plain: [[" a", 1], ["\n", 1]],
          severalInOne: [[" a", 1], [" b", 1]],
          unfinished: [["🌞", 3], ["x", 1]],
          neverFinished: [["a", 1]],
          heldBack: [["ST", 1], ["AR", 1]],
          cut: [["ab", 1], ["c", 1]],
          respelled: [["a", 1], ["b", 1]],
          withoutTokens: [["a", 0], ["b", 0]],
        });
      }));

    test("an action's name becomes shares; the net is taken over the axes that are on", () =>
      withPage(shared.url, async (page) => {
        const results = await page.evaluate(async () => {
          const { Averages, axesOn, netShare, parseAction } = await import("/actions.js");
          const averages = new Averages(["keep", "bits"]);
          averages.add({ action: "k050-s070-q8", effective: true });
          averages.add({ action: "k100-s100-q16", effective: true });
          averages.add({ action: "k100-s100-q16", effective: false });
          return {
            action: parseAction("k002.5-s100-q16"),
            wrong: [parseAction("k050"), parseAction(undefined)],
            on: axesOn({ keep: { levels: [0.1, 1] }, prune: { levels: [1] }, bits: { levels: [3, 16] } }),
            allOff: axesOn({ keep: { levels: [1] }, prune: { levels: [1] }, bits: { levels: [16] } }),
            net: netShare({ keep: 0.5, prune: 0.7, bits: 8 }, ["keep", "bits"]),
            realised: averages.realised,
            counts: [averages.steps, averages.effective],
          };
        });
        assert.deepEqual(results.action, { keep: 0.025, prune: 1, bits: 16 });
        assert.deepEqual(results.wrong, [null, null]);
        assert.deepEqual(results.on, ["keep", "bits"]);
        assert.deepEqual(results.allOff, ["keep", "prune", "bits"]);
        assert.equal(results.net, 0.5);
        assert.deepEqual(results.realised, { keep: 0.75, prune: 0.85, bits: 12, net: 0.75 });
        assert.deepEqual(results.counts, [3, 2]);
      }));
  });
}
