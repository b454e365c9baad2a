// Joins a stream's text with its tokens. The text of an event is what to show; tokens say how it came
// about, and need not fit it: a token of an unfinished character has no text, one that begins a stop text
// is held back, one that is cut by it shows only in part.

export class Pieces {
  #text = "";
  #tokens = []; // not shown yet
  #group = []; // tokens of a character that is not complete

  // Returns the pieces that are ready: [{text, tokens}]; tokens may be empty (an answer without actions).
  push(text, tokens) {
    this.#text += text;
    this.#tokens.push(...tokens);
    const ready = [];
    while (this.#tokens.length > 0) {
      const token = this.#tokens[0];
      if (token.text === "") {
        this.#group.push(this.#tokens.shift());
      } else if (this.#text.startsWith(token.text)) {
        this.#take(ready, token.text, [this.#tokens.shift()]);
      } else if (token.text.startsWith(this.#text)) {
        return ready; // the rest of this token is to come, or was cut
      } else {
        this.#take(ready, this.#text, this.#tokens.splice(0)); // spelled otherwise: one piece of all
      }
    }
    if (this.#text !== "") this.#take(ready, this.#text, []);
    return ready;
  }

  // What is left when the stream has ended. Tokens without any text are dropped.
  end() {
    const ready = [];
    if (this.#text !== "") this.#take(ready, this.#text, this.#tokens.splice(0));
    return ready;
  }

  #take(ready, text, tokens) {
    ready.push({ text, tokens: [...this.#group.splice(0), ...tokens] });
    this.#text = this.#text.slice(text.length);
  }
}
