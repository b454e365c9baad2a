// Reading the form's fields, and pointing at the one that was wrong.

// A field that cannot be read; everything else about its value is for the server to judge.
export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.title = "A setting cannot be used";
    this.param = field.dataset.param;
  }
}

// The number in an <input type=number>; undefined where it is empty.
export function numberOf(input) {
  if (input.validity.badInput) throw new FieldError(input, "this is not a number");
  return input.value === "" ? undefined : Number(input.value);
}

// "\n" in a line of the field of stop texts stands for a line end, "\\" for a backslash.
function unescape(line) {
  const meaning = { n: "\n", t: "\t", r: "\r", "\\": "\\" };
  return line.replace(/\\([ntr\\])/g, (_, letter) => meaning[letter]);
}

// The request's sampling fields; those left empty are left to the server.
export function samplingFields() {
  const fields = {};
  for (const id of ["temperature", "top_p", "max_tokens", "seed"]) {
    const value = numberOf(document.getElementById(id));
    if (value !== undefined) fields[id] = value;
  }
  const stop = document.getElementById("stop_texts").value.split("\n").filter((line) => line !== "");
  if (stop.length > 0) fields.stop = stop.map(unescape);
  return fields;
}

// Marks the field that an error names ("sol.budget", "messages[0].content") and opens what hides it.
export function markField(param) {
  for (const field of document.querySelectorAll("[data-param]")) {
    const names = field.dataset.param.split(" ");
    if (!names.some((name) => param === name || param?.startsWith(`${name}[`))) continue;
    field.setAttribute("aria-invalid", "true");
    const details = field.closest("details");
    if (details) details.open = true;
  }
}

export function unmarkFields() {
  for (const field of document.querySelectorAll('[aria-invalid="true"]')) field.removeAttribute("aria-invalid");
}
