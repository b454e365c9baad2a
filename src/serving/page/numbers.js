// Numbers as the page writes them.

const trimmed = (value, digits) => String(Number(value.toFixed(digits)));

export const NONE = "–";

// A value of an axis (or "net") with as many digits as differ in practice.
export function axisText(name, value, digits = name === "bits" ? 1 : 2) {
  return Number.isFinite(value) ? value.toFixed(digits) : NONE;
}

export function milliseconds(value) {
  if (!Number.isFinite(value)) return NONE;
  if (value < 0.1) return `${value.toPrecision(2)} ms`;
  return `${value < 10 ? value.toFixed(2) : trimmed(value, 1)} ms`;
}

export function percent(value) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %` : NONE;
}

export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// Spaces and line ends of a token made visible.
export function visible(text) {
  return text.replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
}
