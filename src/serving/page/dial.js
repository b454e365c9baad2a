// The budget's controls: one slider, and behind a disclosure the other ways that the server knows.

import { AXES, axesOn, DENSE, netShare, parseAction, share } from "./actions.js";
import { axisText, milliseconds } from "./numbers.js";
import { FieldError, numberOf } from "./fields.js";

const STEPS = 100; // the slider's steps per unit of the net keep-rate
const START = 0.6;

const find = (id) => document.getElementById(id);
const radioOf = (way) => document.querySelector(`input[name="way"][value="${way}"]`);

export class Dial {
  #sol = null; // what /v1/models says
  #on = [];
  #timed = false; // the controller was trained for times: only the fixed policy spends anything else
  #chosen = null; // the way by which the policy was last fitted
  #changed;

  // `changed` is called after every change by the user.
  constructor(changed) {
    this.#changed = changed;
    find("budget").addEventListener("input", () => this.#choose("budget"));
    for (const radio of document.getElementsByName("way")) {
      radio.addEventListener("change", () => this.#choose(radio.value));
    }
    for (const group of this.#groups) group.addEventListener("input", () => this.#choose(group.dataset.way));
    find("policy").addEventListener("change", () => this.#choose(this.way));
  }

  get #groups() {
    return document.querySelectorAll(".of-way");
  }

  get way() {
    return document.querySelector('input[name="way"]:checked').value;
  }

  get isDense() {
    return this.way === "budget" && Number(find("budget").value) === Number(find("budget").max);
  }

  // Takes the ranges of a model's `sol` object.
  setModel(sol) {
    this.#sol = sol;
    this.#on = axesOn(sol.axes);
    this.#timed = sol.controller?.timed ?? false;
    this.#setBudget(sol.budget);
    for (const { name } of AXES) this.#setAxis(name, sol.axes[name]);
    this.#setTime(sol.latency);
    this.#setPolicies(sol.policies);
    this.#begin(sol);
    this.#show();
  }

  // What to send as `sol` (null for a dense run), how to call it, and what it means as far as that is known
  // before the server answers.
  request() {
    if (this.isDense) return denseRequest();
    const way = this.way;
    const policy = { policy: find("policy").value };
    if (way === "budget") {
      const budget = Number(find("budget").value) / STEPS;
      const title = `Budget ${axisText("net", budget)}`;
      return { sol: { budget, ...policy }, title: title + this.#byPolicy(), asked: { net: budget } };
    }
    if (way === "axes") {
      const values = Object.fromEntries(this.#on.map((name) => [name, Number(find(`axis-${name}`).value)]));
      const asked = { ...this.#levels(), ...values };
      return { sol: { ...values, ...policy }, title: this.#axesText() + this.#byPolicy(), asked: this.#withNet(asked) };
    }
    if (way === "time") {
      const ms = numberOf(find("ms"));
      if (ms === undefined) throw new FieldError(find("ms"), "say how many milliseconds a token may take");
      return { sol: { ms_per_token: ms, ...policy }, title: `${milliseconds(ms)} per token`, asked: null };
    }
    const fixed = find("fixed").value.trim();
    const values = parseAction(fixed);
    return { sol: { fixed }, title: `Every token ${fixed}`, asked: values && this.#withNet(values) };
  }

  // Said where there is a choice and it is not the usual one.
  #byPolicy() {
    return find("policy").options.length > 1 && find("policy").value === "fixed" ? ", fixed policy" : "";
  }

  #choose(way) {
    this.#take(way);
    this.#show();
    this.#changed();
  }

  #take(way) {
    radioOf(way).checked = true;
    if (this.#timed && way !== this.#chosen) find("policy").value = way === "axes" ? "fixed" : "learned";
    this.#chosen = way;
  }

  // With a way that the server can be asked by, so that the first request is one that is answered.
  #begin({ budget, latency }) {
    if (!radioOf(this.way).disabled) return this.#take(this.way);
    if (budget) return this.#take("budget");
    find("ways").open = true;
    if (this.#timed && latency && find("ms").value === "") find("ms").value = find("ms").placeholder;
    return this.#take(!this.#timed ? "axes" : latency ? "time" : "fixed");
  }

  #show() {
    const way = this.way;
    const budget = axisText("net", Number(find("budget").value) / STEPS);
    const [value, unit] = {
      budget: this.isDense ? ["dense", "everything is computed"] : [budget, "net keep-rate"],
      axes: [this.#axesText(), ""],
      time: [find("ms").value || "–", "ms per token"],
      fixed: [find("fixed").value, "for every token"],
    }[way];
    find("dial-value").textContent = value;
    find("dial-value").classList.toggle("long", value.length > 6);
    find("dial-unit").textContent = unit;
    find("budget").setAttribute("aria-valuetext", this.isDense || way !== "budget" ? value : `${budget} net keep-rate`);
    find("budget").classList.toggle("idle", way !== "budget");
    for (const group of this.#groups) group.hidden = group.dataset.way !== way;
    for (const { name } of AXES) {
      const slider = find(`axis-${name}`);
      if (!slider.disabled) slider.parentElement.querySelector(".value").textContent = axisText(name, Number(slider.value));
    }
    const decided = this.isDense || way === "fixed" || (this.#timed && way === "axes");
    find("policy").disabled = decided || find("policy").options.length < 2;
  }

  // `range`: null where the controller takes no net keep-rate.
  #setBudget(range) {
    const slider = find("budget");
    slider.disabled = radioOf("budget").disabled = !range;
    find("budget-low").textContent = "";
    find("no-budget").hidden = Boolean(range);
    find("no-budget").textContent = this.#timed
      ? "This server's controller was trained for times: it takes no net keep-rate."
      : "This server's controller has no validation frontier: it takes no net keep-rate.";
    if (!range) return;
    const low = Math.ceil(range.low * STEPS - 1e-6);
    const high = Math.floor(range.high * STEPS + 1e-6);
    slider.min = low;
    slider.max = high + 1; // one step beyond the highest budget is dense
    slider.value = Math.min(Math.max(START * STEPS, low), high);
    slider.style.setProperty("--from", low / STEPS);
    find("budget-low").textContent = axisText("net", low / STEPS);
  }

  #setAxis(name, { levels, low, high }) {
    const slider = find(`axis-${name}`);
    slider.min = low;
    slider.max = high;
    slider.step = name === "bits" ? 0.1 : 0.01;
    slider.value = (low + high) / 2;
    slider.style.setProperty("--from", Math.min(share(name, low), 0.99));
    slider.disabled = levels.length < 2;
    if (slider.disabled) slider.parentElement.querySelector(".value").textContent = `off: always ${levels[0]}`;
  }

  #setTime(latency) {
    radioOf("time").disabled = find("ms").disabled = !latency;
    if (!latency) {
      find("ms-hint").textContent = "This server has measured no times.";
      return;
    }
    const { fastest_ms: fastest, dense_ms: dense } = latency;
    find("ms").placeholder = ((fastest + dense) / 2).toPrecision(2);
    find("ms-hint").textContent = `The fastest is ${milliseconds(fastest)}, dense ${milliseconds(dense)}.`;
  }

  #setPolicies(policies) {
    const select = find("policy");
    for (const option of [...select.options]) if (!policies.includes(option.value)) option.remove();
    select.value = policies[0];
    find("policy-hint").hidden = policies.includes("learned");
    find("policy-hint").textContent = "The server has no controller (option -c), so there is no learned policy.";
  }

  #levels() {
    return Object.fromEntries(AXES.map(({ name }) => [name, this.#sol.axes[name].levels[0]]));
  }

  #axesText() {
    return AXES.filter(({ name }) => this.#on.includes(name))
      .map(({ name, symbol }) => `${symbol} ${axisText(name, Number(find(`axis-${name}`).value))}`)
      .join("  ");
  }

  #withNet(values) {
    return { ...values, net: netShare(values, this.#on) };
  }
}

export function denseRequest() {
  return { sol: null, title: "Dense", asked: { ...DENSE, net: 1 } };
}
