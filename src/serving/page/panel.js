// One answer: its text, what it was asked to spend and what it spent.

import { generate } from "./api.js";
import { Averages } from "./actions.js";
import { Figures } from "./figures.js";
import { Pieces } from "./pieces.js";
import { showProblem } from "./problem.js";
import { TokenText } from "./tokens.js";

export class Panel {
  #root;
  #figures;
  #text;
  #on;
  // After a run: the text, its tokens, and the server's account (null where the answer is not complete).
  text = "";
  tokens = [];
  account = null;

  // `title` names the panel, `asked` is as in Dial.request; the prompt is shown before a completion.
  constructor({ title, asked, prompt }, { on, shadeBy, tooltip }) {
    this.#root = document.getElementById("panel").content.cloneNode(true).firstElementChild;
    this.#on = on;
    this.#find("h3").textContent = title;
    this.#find(".text").setAttribute("aria-label", `Text, ${title}`);
    this.#find(".prompt").textContent = prompt;
    this.#figures = new Figures(this.#find(".figures"), on);
    this.#text = new TokenText(this.#find(".tokens"), tooltip, on, shadeBy);
    this.asked = asked;
    this.#figures.show(asked, null);
  }

  get root() {
    return this.#root;
  }

  shadeBy(by) {
    this.#text.shadeBy(by);
  }

  // Streams the answer in. Returns true when it is complete, false when `signal` stopped it; an error is shown
  // here and thrown.
  async run({ chat, body, signal, retry }) {
    this.#state("generating …");
    this.#root.classList.add("running");
    this.#root.setAttribute("aria-busy", "true");
    try {
      await this.#stream(chat, body, signal);
      this.#state("");
      return true;
    } catch (error) {
      this.#state(error.name === "AbortError" ? "stopped" : "not complete");
      if (error.name === "AbortError") return false;
      this.#find(".figures").hidden = this.tokens.length === 0;
      showProblem(this.#find(".problem"), error, retry);
      throw error;
    } finally {
      this.#root.classList.remove("running");
      this.#root.removeAttribute("aria-busy");
    }
  }

  waiting() {
    this.#state("waiting for the dense run …");
  }

  skipped() {
    this.#state("not run");
  }

  async #stream(chat, body, signal) {
    const pieces = new Pieces();
    const averages = new Averages(this.#on);
    let first = 0;
    let firstSteps = 0;
    try {
      for await (const event of generate(chat, body, signal)) {
        this.text += event.text;
        this.tokens.push(...event.tokens);
        this.#text.append(pieces.push(event.text, event.tokens));
        for (const token of event.tokens) averages.add(token);
        if (event.sol) {
          this.account = event.sol;
          this.#finish(event.sol, event.finish);
        } else if (event.tokens.length > 0) {
          const now = performance.now();
          if (first === 0) [first, firstSteps] = [now, averages.steps];
          this.#figures.show(this.asked, averages.realised);
          this.#figures.showPace((now - first) / (averages.steps - firstSteps), averages.steps);
        }
      }
    } finally {
      this.#text.append(pieces.end());
    }
  }

  #finish(sol, finish) {
    const { budget, ...axes } = sol.requested ?? {};
    this.#figures.show({ net: budget ?? this.asked?.net, ...axes }, sol.realised);
    this.#figures.showAccount(sol, finish);
  }

  #state(text) {
    this.#find(".state").textContent = text;
  }

  #find(selector) {
    return this.#root.querySelector(selector);
  }
}
