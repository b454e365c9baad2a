// Starts the program under test and waits until it answers.

import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.resolve(here, "../..");
export const chatTemplate = path.join(here, "chat.jinja");

const binary = process.env.SOL_BINARY ?? path.join(root, "build/sol");
const model = path.join(root, "models/default");
export const controller = path.join(model, "controllers/2l-harsh");
const START_MS = 60_000;

function deadline(ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${ms / 1000} s`)), ms);
  });
  return { late, clear: () => clearTimeout(timer) };
}

// The address that the program prints once it accepts connections.
function address(child) {
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (data) => {
      output += data;
      const line = /^listening on (http:\/\/\S+)$/m.exec(output);
      if (line) resolve(line[1]);
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`sol serve ended (${signal ?? code})`)));
  });
}

async function healthy(url) {
  for (;;) {
    const response = await fetch(`${url}/health`);
    if (response.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// `options`: further ones of `sol serve`; `controllerDir`: null for none. Returns {url, stop}; `stop` ends it as a
// user would.
export async function serve(options = [], { controllerDir = controller } = {}) {
  const args = ["serve", "-m", model, ...(controllerDir ? ["-c", controllerDir] : []), "--port", "0", ...options];
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exit = new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));
  const stop = async () => {
    child.kill("SIGTERM");
    return exit;
  };
  const start = deadline(START_MS, "sol serve was not ready");
  try {
    const url = await Promise.race([address(child), start.late]);
    await Promise.race([healthy(url), start.late]);
    return { url, stop };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    start.clear();
  }
}
