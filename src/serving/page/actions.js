// What one token was given: its action's name as shares, and means over tokens.

export const AXES = [
  { name: "keep", symbol: "κ", label: "context", what: "share of the cached keys attended to" },
  { name: "prune", symbol: "ρ", label: "MLP", what: "share of the MLP's input channels" },
  { name: "bits", symbol: "q", label: "bits", what: "activation bits" },
];

export const DENSE = { keep: 1, prune: 1, bits: 16 };

// "k050-s070-q8" → {keep: 0.5, prune: 0.7, bits: 8}; null for anything else.
export function parseAction(text) {
  const match = /^k([0-9.]+)-s([0-9.]+)-q([0-9]+)$/.exec(text ?? "");
  if (!match) return null;
  return { keep: Number(match[1]) / 100, prune: Number(match[2]) / 100, bits: Number(match[3]) };
}

// An axis' value as a share: bits count as sixteenths.
export function share(axis, value) {
  return axis === "bits" ? value / 16 : value;
}

// The names of the axes that can be turned; an axis with one level is off. Where all are off, the
// net keep-rate is taken over all.
export function axesOn(axes) {
  const on = AXES.map((axis) => axis.name).filter((name) => axes?.[name]?.levels?.length > 1);
  return on.length > 0 ? on : AXES.map((axis) => axis.name);
}

// Mean share over the axes `on`.
export function netShare(values, on) {
  return on.reduce((sum, name) => sum + share(name, values[name]), 0) / on.length;
}

// Averages over the tokens that count, as the server computes them, while its own are not there yet.
export class Averages {
  #sums = { keep: 0, prune: 0, bits: 0 };
  #on;
  steps = 0;
  effective = 0;

  constructor(on) {
    this.#on = on;
  }

  add(token) {
    this.steps += 1;
    const values = parseAction(token.action);
    if (!token.effective || !values) return;
    this.effective += 1;
    for (const name of Object.keys(this.#sums)) this.#sums[name] += values[name];
  }

  // {keep, prune, bits, net}, or null while no token counts.
  get realised() {
    if (this.effective === 0) return null;
    const means = {};
    for (const [name, sum] of Object.entries(this.#sums)) means[name] = sum / this.effective;
    return { ...means, net: netShare(means, this.#on) };
  }
}
