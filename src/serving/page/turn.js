// One press of Generate or Compare: a request, or two one after the other, and what they say together.

import { denseRequest } from "./dial.js";
import { milliseconds } from "./numbers.js";
import { Panel } from "./panel.js";

const SEEDS = 2 ** 31;

export class Turn {
  #root;
  #panels;
  #requests;
  #fields;
  #said;

  // `said`: {task, prompt, messages}; `request`: of Dial.request; `fields`: the other fields of the body.
  constructor(said, request, fields, compare, settings) {
    this.#root = document.getElementById("turn").content.cloneNode(true).firstElementChild;
    this.#said = said;
    this.#fields = { ...fields };
    // Both runs must draw alike.
    if (compare) this.#fields.seed ??= Math.floor(Math.random() * SEEDS);
    this.#requests = compare ? [denseRequest(), request] : [request];
    const prompt = said.task === "chat" ? "" : said.prompt;
    this.#panels = this.#requests.map((each) => new Panel({ ...each, prompt }, settings));
    const line = this.#root.querySelector(".said");
    line.textContent = said.prompt;
    line.hidden = said.task !== "chat";
    this.#root.querySelector(".panels").append(...this.#panels.map((panel) => panel.root));
  }

  get root() {
    return this.#root;
  }

  // Of the last run, which is the one with the budget.
  get text() {
    return this.#panels.at(-1).text;
  }

  shadeBy(by) {
    for (const panel of this.#panels) panel.shadeBy(by);
  }

  // Runs what there is to run; one at a time, since requests that share the machine share their time too.
  // Returns false when `signal` stopped it; throws what the failed run threw.
  async run(signal, retry) {
    for (const panel of this.#panels.slice(1)) panel.waiting();
    let done = 0;
    try {
      for (const [index, panel] of this.#panels.entries()) {
        const body = this.#body(this.#requests[index].sol);
        done += 1;
        if (!(await panel.run({ chat: this.#said.task === "chat", body, signal, retry }))) return false;
      }
    } finally {
      for (const panel of this.#panels.slice(done)) panel.skipped();
    }
    if (this.#panels.length > 1) this.#compare();
    return true;
  }

  // For the status line.
  summary() {
    const { tokens, account } = this.#panels.at(-1);
    const parts = [`${tokens.length} tokens`];
    if (account?.realised) parts.push(`net keep-rate ${account.realised.net.toFixed(3)}`);
    if (Number.isFinite(account?.ms_per_token)) parts.push(`${milliseconds(account.ms_per_token)} per token`);
    return parts.join(", ");
  }

  #body(sol) {
    const { task, prompt, messages } = this.#said;
    const what = task === "chat" ? { messages: [...messages, { role: "user", content: prompt }] } : { prompt };
    return { ...what, ...this.#fields, sol: { ...sol, actions: true } };
  }

  #compare() {
    const [dense, budget] = this.#panels;
    const parts = [];
    const [slow, fast] = [dense.account?.ms_per_token, budget.account?.ms_per_token];
    if (slow > 0 && fast > 0) {
      const change = Math.round(100 * (fast / slow - 1));
      const sign = change > 0 ? "+" : change < 0 ? "−" : "±";
      parts.push(
        `${milliseconds(fast)} per token instead of ${milliseconds(slow)} (${sign}${Math.abs(change)} %).`,
      );
    }
    parts.push(sameStart(dense.tokens, budget.tokens));
    const line = this.#root.querySelector(".comparison");
    line.textContent = parts.join(" ");
    line.hidden = false;
  }
}

function sameStart(one, other) {
  let same = 0;
  while (same < one.length && one[same].token === other[same]?.token) same += 1;
  if (same === one.length && same === other.length) return "The texts are the same.";
  if (same === 0) return "The texts differ from the first token on.";
  return `The texts are the same for ${same === 1 ? "one token" : `${same} tokens`}.`;
}
