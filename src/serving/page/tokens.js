// The generated text as one element per token, shaded by what the token was given. The whole text is one stop
// of the Tab key; arrow keys walk from token to token.

import { AXES, netShare, parseAction, share } from "./actions.js";

// The share that a piece is shaded by; `by` is "net" or an axis' name. Null: no token of it counts.
function shade(tokens, on, by) {
  const counted = tokens.filter((token) => token.effective).map((token) => parseAction(token.action));
  const shares = counted
    .filter((values) => values !== null)
    .map((values) => (by === "net" ? netShare(values, on) : share(by, values[by])));
  if (shares.length === 0) return null;
  return shares.reduce((sum, value) => sum + value, 0) / shares.length;
}

export const SHADES = ["net", ...AXES.map((axis) => axis.name)];

export class TokenText {
  #root;
  #tooltip;
  #on;
  #by;
  #pieces = new Map(); // element → piece

  constructor(root, tooltip, on, by) {
    this.#root = root;
    this.#tooltip = tooltip;
    this.#on = on;
    this.#by = by;
    root.addEventListener("pointerover", (event) => this.#show(event.target));
    root.addEventListener("pointerout", (event) => {
      if (this.#pieces.has(event.target)) tooltip.leave();
    });
    root.addEventListener("focusin", (event) => {
      this.#makeStop(event.target);
      this.#show(event.target);
    });
    root.addEventListener("focusout", () => tooltip.hide());
    root.addEventListener("keydown", (event) => this.#walk(event));
  }

  append(pieces) {
    for (const piece of pieces) {
      if (piece.tokens.length === 0) {
        this.#root.append(piece.text);
        continue;
      }
      // The space before a word stays unshaded: at a line's end it would hang over as a sliver.
      const space = /^ +(?=\S)/.exec(piece.text)?.[0] ?? "";
      const mark = document.createElement("span");
      mark.className = "token";
      mark.textContent = piece.text.slice(space.length);
      mark.classList.toggle("line-end", piece.text.startsWith("\n"));
      mark.tabIndex = this.#pieces.size === 0 ? 0 : -1;
      this.#pieces.set(mark, piece);
      this.#paint(mark, piece);
      this.#root.append(space, mark);
    }
  }

  shadeBy(by) {
    this.#by = by;
    for (const [mark, piece] of this.#pieces) this.#paint(mark, piece);
  }

  #paint(mark, piece) {
    const value = shade(piece.tokens, this.#on, this.#by);
    mark.classList.toggle("uncounted", value === null);
    mark.style.setProperty("--share", value ?? 0);
  }

  #show(mark) {
    const piece = this.#pieces.get(mark);
    if (piece) this.#tooltip.show(mark, piece, this.#on);
  }

  #makeStop(mark) {
    for (const other of this.#pieces.keys()) other.tabIndex = other === mark ? 0 : -1;
  }

  #walk(event) {
    const marks = [...this.#pieces.keys()];
    const at = marks.indexOf(event.target);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const to = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: nextLine(marks, at, -1),
      ArrowDown: nextLine(marks, at, 1),
      Home: 0,
      End: marks.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    marks[to]?.focus();
  }
}

// The index of the mark on the line above or below that lies nearest to mark `at`.
function nextLine(marks, at, step) {
  const box = (index) => marks[index].getBoundingClientRect();
  const from = box(at);
  let best = at;
  let line = null;
  for (let i = at + step; i >= 0 && i < marks.length; i += step) {
    const { top, left, height } = box(i);
    if (Math.abs(top - from.top) < height / 2) continue;
    line ??= top;
    if (Math.abs(top - line) >= height / 2) break;
    if (best === at || Math.abs(left - from.left) < Math.abs(box(best).left - from.left)) best = i;
  }
  return best;
}
