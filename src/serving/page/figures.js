// What was asked for beside what was spent, as rows of a table that the panel's template holds.

import { AXES, share } from "./actions.js";
import { axisText, count, milliseconds, NONE, percent } from "./numbers.js";

const ROWS = ["net", ...AXES.map((axis) => axis.name)];

// `root` holds tr[data-axis] with cells .asked, .got and .meter, and paragraphs .cost and .notes.
export class Figures {
  #root;

  constructor(root, on) {
    this.#root = root;
    for (const name of ROWS.slice(1)) this.#row(name).classList.toggle("off", !on.includes(name));
  }

  // Both are {net, keep, prune, bits}, values missing where unknown, or null.
  show(asked, got) {
    for (const name of ROWS) {
      const row = this.#row(name);
      row.querySelector(".asked").textContent = axisText(name, asked?.[name]);
      row.querySelector(".got").textContent = axisText(name, got?.[name], name === "bits" ? 2 : 3);
      const meter = row.querySelector(".meter");
      setShare(meter, "--got", got?.[name], name);
      setShare(meter, "--asked", asked?.[name], name);
      meter.classList.toggle("unasked", !Number.isFinite(asked?.[name]));
    }
  }

  // While tokens come in: the time as seen from here.
  showPace(ms, steps) {
    this.#cost(milliseconds(ms), "per token so far, as seen from here");
    this.#notes([count(steps, "token")]);
  }

  // The server's own account.
  showAccount(sol, finish) {
    this.#cost(milliseconds(sol.ms_per_token), latencyText(sol.latency));
    const notes = [count(sol.steps, "token")];
    if (finish === "stop") notes.push("ended by itself");
    if (finish === "length") notes.push("ended at the token limit");
    if (sol.effective_steps !== sol.steps) notes.push(`${sol.effective_steps} of them count`);
    if (Number.isFinite(sol.attended)) notes.push(`${percent(sol.attended)} of the keys attended to`);
    if (sol.policy_share > 0) notes.push(`${sol.policy} policy ${percent(sol.policy_share)} of the time`);
    if (sol.refresh_share > 0) notes.push(`refreshes ${percent(sol.refresh_share)}`);
    if (sol.seed !== undefined) notes.push(`seed ${sol.seed}`);
    this.#notes(notes);
  }

  #row(name) {
    return this.#root.querySelector(`tr[data-axis="${name}"]`);
  }

  #cost(time, what) {
    this.#root.querySelector(".cost strong").textContent = time === NONE ? "" : time;
    this.#root.querySelector(".cost span").textContent = time === NONE ? "" : what;
  }

  #notes(notes) {
    this.#root.querySelector(".notes").textContent = notes.join(" · ");
  }
}

function setShare(meter, property, value, name) {
  meter.style.setProperty(property, Number.isFinite(value) ? share(name, value) : 0);
}

function latencyText(latency) {
  if (!latency) return "per token";
  const target = milliseconds(latency.target_ms);
  if (latency.attained) return `per token; the target of ${target} is met`;
  return `per token; the target of ${target} is not met: between ${milliseconds(latency.fastest_ms)} and ${milliseconds(latency.dense_ms)} can be had now`;
}
