// The page: connects the controls with the requests.

import { axesOn } from "./actions.js";
import { apiKey, fetchModel } from "./api.js";
import { Dial } from "./dial.js";
import { FieldError, markField, samplingFields, unmarkFields } from "./fields.js";
import { hideProblem, showProblem } from "./problem.js";
import { Tooltip } from "./tooltip.js";
import { Turn } from "./turn.js";

const LOADING_MS = 1000; // between two looks at a server that is loading

const find = (id) => document.getElementById(id);

const tooltip = new Tooltip(find("tooltip"));
const dial = new Dial(showButtons);
let model = null;
let running = null; // the AbortController of the turn that runs
let turns = [];
let messages = []; // of the conversation so far

const task = () => document.querySelector('input[name="task"]:checked').value;

function announce(text) {
  find("status").textContent = text;
}

async function connect() {
  hideProblem(find("notice"));
  try {
    model = await fetchModel();
  } catch (error) {
    model = null;
    find("model").textContent = error.status === 503 ? "the model is loading …" : "not connected";
    if (error.status === 503) {
      setTimeout(connect, LOADING_MS);
    } else {
      showProblem(find("notice"), error, connect);
      if (error.status === 401) askForKey();
    }
    showButtons();
    return;
  }
  showModel();
  showButtons();
}

function showModel() {
  const { context, controller, chat } = model.sol;
  const parts = [model.id, controller ? `controller ${controller.name}` : "no controller"];
  find("model").textContent = [...parts, `context of ${context} tokens`].join(" · ");
  find("chat-hint").hidden = chat;
  find("chat-hint").textContent =
    "No chat: this model has no chat template. Start the server with --chat-template FILE.";
  document.querySelector('input[name="task"][value="chat"]').disabled = !chat;
  dial.setModel(model.sol);
}

function askForKey() {
  find("access").open = true;
  find("key").focus();
}

// A button that cannot be used stays focusable, so that the keyboard's place is not lost.
function setUsable(button, usable) {
  button.setAttribute("aria-disabled", String(!usable));
}

function showButtons() {
  const usable = model !== null && running === null;
  setUsable(find("generate"), usable);
  setUsable(find("compare"), usable && !dial.isDense);
  find("compare").title = dial.isDense ? "The budget is dense: there is nothing to compare" : "";
  find("stop").hidden = running === null;
  find("clear").hidden = task() !== "chat" || messages.length === 0 || running !== null;
  find("generate").textContent = task() === "chat" ? "Send" : "Generate";
  find("prompt-label").textContent = task() === "chat" ? "Message" : "Prompt";
}

function isUsable(button) {
  return button.getAttribute("aria-disabled") !== "true";
}

// Reads the form; a field that cannot be read is shown like a server's error.
function readTurn(compare) {
  const said = { task: task(), prompt: find("prompt").value, messages };
  const fields = { model: model.id, ...samplingFields() };
  const settings = { on: axesOn(model.sol.axes), shadeBy: find("shade").value, tooltip };
  return new Turn(said, dial.request(), fields, compare, settings);
}

async function start(compare) {
  unmarkFields();
  hideProblem(find("notice"));
  const prompt = find("prompt").value;
  const chat = task() === "chat";
  let turn;
  try {
    turn = readTurn(compare);
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    markField(error.param);
    showProblem(find("notice"), error);
    find("notice").scrollIntoView({ block: "nearest" });
    return;
  }
  if (!chat) clearTurns();
  turns.unshift(turn);
  find("empty").hidden = true;
  find("turns").prepend(turn.root);
  turn.root.scrollIntoView({ block: "nearest" });
  running = new AbortController();
  showButtons();
  announce("Generating");
  let failed = false;
  try {
    const complete = await turn.run(running.signal, () => retry(turn, compare));
    announce(`${complete ? "Done" : "Stopped"}: ${turn.summary()}`);
  } catch (error) {
    failed = true;
    announce("");
    markField(error.param);
    if (error.status === 401) askForKey();
  }
  running = null;
  // An answer that broke off is no part of the conversation: its message is still there to be sent again.
  if (chat && !failed && turn.text !== "") remember(prompt, turn.text);
  showButtons();
}

function retry(turn, compare) {
  if (running) return;
  turns = turns.filter((other) => other !== turn);
  turn.root.remove();
  find("generate").focus();
  start(compare);
}

function remember(prompt, reply) {
  messages.push({ role: "user", content: prompt }, { role: "assistant", content: reply });
  if (find("prompt").value === prompt) find("prompt").value = "";
}

function clearTurns() {
  tooltip.hide();
  for (const turn of turns) turn.root.remove();
  turns = [];
  find("empty").hidden = false;
}

find("compose").addEventListener("submit", (event) => {
  event.preventDefault();
  if (isUsable(find("generate"))) start(false);
});
find("compare").addEventListener("click", () => {
  if (isUsable(find("compare"))) start(true);
});
find("stop").addEventListener("click", () => {
  running?.abort();
  find("generate").focus();
});
find("clear").addEventListener("click", () => {
  messages = [];
  clearTurns();
  showButtons();
  find("prompt").focus();
});
find("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("compose").requestSubmit();
});
for (const radio of document.getElementsByName("task")) {
  radio.addEventListener("change", () => {
    if (running) running.abort();
    messages = [];
    clearTurns();
    showButtons();
  });
}
find("shade").addEventListener("change", () => {
  find("scale-high").textContent = find("shade").value === "bits" ? "16" : "1";
  for (const turn of turns) turn.shadeBy(find("shade").value);
});
find("key").value = apiKey.get();
find("access-form").addEventListener("submit", (event) => {
  event.preventDefault();
  find("access").open = false;
  apiKey.set(find("key").value.trim());
  connect();
});

showButtons();
connect();
