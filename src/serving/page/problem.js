// An error in plain sight: what happened, why, which field, and a button to try again.

function paragraph(text) {
  const made = document.createElement("p");
  made.textContent = text;
  return made;
}

// Fills `box` (role alert) from an error with `title`, `message` and, as far as known, `param`, `code`,
// `status` and `retryAfter`. `retry` may be missing.
export function showProblem(box, error, retry) {
  const title = document.createElement("strong");
  title.textContent = error.title ?? "Something went wrong in this page";
  box.replaceChildren(title, paragraph(error.message));
  const details = [];
  if (error.param) details.push(`field: ${error.param}`);
  if (error.code) details.push(`code: ${error.code}`);
  if (error.status) details.push(`status: ${error.status}`);
  if (details.length > 0) {
    const line = paragraph(details.join(" · "));
    line.className = "error-details";
    box.append(line);
  }
  if (Number.isFinite(error.retryAfter)) {
    box.append(paragraph(`It asks to come back in ${error.retryAfter} s.`));
  }
  if (retry) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Try again";
    button.addEventListener("click", retry);
    box.append(button);
  }
  box.hidden = false;
}

export function hideProblem(box) {
  box.hidden = true;
  box.replaceChildren();
}
