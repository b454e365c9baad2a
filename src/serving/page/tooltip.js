// One tooltip for all tokens: appears on hover and on keyboard focus, stays while pointed at, goes on
// Escape.

import { AXES, netShare, parseAction, share } from "./actions.js";
import { axisText, count, visible } from "./numbers.js";

const GAP = 6;
const LEAVE_MS = 120;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function bar(value) {
  const made = element("span", "bar");
  made.setAttribute("aria-hidden", "true");
  made.style.setProperty("--share", value);
  return made;
}

function row(symbol, label, text, value) {
  const made = element("tr");
  const head = element("th", "", symbol ? `${symbol} ${label}` : label);
  head.scope = "row";
  const cell = element("td", "bar-cell");
  cell.append(bar(value));
  made.append(head, element("td", "number", text), cell);
  return made;
}

function describe(token, on) {
  const parts = [];
  const values = parseAction(token.action);
  if (values) {
    const table = element("table");
    for (const { name, symbol, label } of AXES) {
      const text = name === "bits" ? String(values.bits) : axisText(name, values[name]);
      table.append(row(symbol, label, text, share(name, values[name])));
    }
    const net = netShare(values, on);
    const last = row("", "net", axisText("net", net), net);
    last.className = "net";
    table.append(last);
    parts.push(table);
  }
  if (!token.effective) {
    parts.push(element("p", "", "Ran dense and is not counted: the text is too short to leave anything out."));
  }
  return parts;
}

export class Tooltip {
  #box;
  #owner = null;
  #timer = 0;

  constructor(box) {
    this.#box = box;
    box.addEventListener("pointerenter", () => clearTimeout(this.#timer));
    box.addEventListener("pointerleave", () => this.leave());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.hide();
    });
    for (const moved of ["scroll", "resize"]) {
      window.addEventListener(moved, () => this.#owner && this.#place(this.#owner), { passive: true });
    }
  }

  show(mark, { text, tokens }, on) {
    this.hide();
    const title = element("p", "token-text", visible(text));
    const parts = tokens.flatMap((token) => describe(token, on));
    if (tokens.length > 1) {
      parts.unshift(element("p", "", `${count(tokens.length, "token")} make up this text:`));
    }
    this.#box.replaceChildren(title, ...parts);
    this.#box.hidden = false;
    this.#place(mark);
    mark.setAttribute("aria-describedby", this.#box.id);
    this.#owner = mark;
  }

  // Goes after a moment in which the pointer can reach the tooltip itself.
  leave() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#owner !== document.activeElement) this.hide();
    }, LEAVE_MS);
  }

  hide() {
    clearTimeout(this.#timer);
    this.#owner?.removeAttribute("aria-describedby");
    this.#owner = null;
    this.#box.hidden = true;
  }

  // Above the first line that the token is on, below where there is no room.
  #place(mark) {
    const target = mark.getClientRects()[0] ?? mark.getBoundingClientRect();
    const { width, height } = this.#box.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const left = target.left + target.width / 2 - width / 2;
    const above = target.top - height - GAP;
    this.#box.style.left = `${Math.max(GAP, Math.min(left, room - width - GAP))}px`;
    this.#box.style.top = `${above >= GAP ? above : target.bottom + GAP}px`;
  }
}
