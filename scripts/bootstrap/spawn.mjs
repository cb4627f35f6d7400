import { spawn } from "node:child_process";
import { constants } from "node:os";
import { say } from "./say.mjs";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
const keptLines = 20;
const progressMs = 4000;

/** While a child runs, a signal ends the child and then us: nothing is left at work behind our back. */
function endTogether(child) {
  const listeners = signals.map((signal) => [
    signal,
    () => {
      child.once("close", () => process.exit(128 + constants.signals[signal]));
      child.kill("SIGTERM");
    },
  ]);
  for (const [signal, listener] of listeners) process.on(signal, listener);
  return () => listeners.forEach(([signal, listener]) => process.off(signal, listener));
}

const endOf = (child) =>
  new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: 127, fault: error.message }));
    child.once("close", (code) => resolve({ code: code ?? 1 }));
  });

/** Runs a program with our own terminal; gives its exit code. */
export async function runOpenly(program, args, options = {}) {
  const child = spawn(program, args, { stdio: "inherit", ...options });
  const release = endTogether(child);
  const { code } = await endOf(child);
  release();
  return code;
}

/** Runs a program and gives its exit code and whole output. */
export async function runQuietly(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  const release = endTogether(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => (output += text));
  const { code, fault } = await endOf(child);
  release();
  return { code, output: fault ?? output };
}

/**
 * Runs a long program and tells every few seconds the last line it wrote; gives its exit code and last lines.
 */
export async function runWithProgress(name, [program, ...args], options = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  const release = endTogether(child);
  let lines = [];
  const isTelling = (line) => line.trim() !== "" && !line.startsWith("npm warn");
  const keep = (text) => (lines = [...lines, ...text.split(/[\r\n]+/).filter(isTelling)].slice(-keptLines));
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", keep);
  const startedAt = performance.now();
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`;
  const timer = setInterval(
    () => say(`  ${name}, ${seconds()}: ${(lines.at(-1) ?? "at work").trim().slice(0, 100)}`),
    progressMs,
  );
  const { code, fault } = await endOf(child);
  clearInterval(timer);
  release();
  return { code, lines: fault ? [fault] : lines, seconds: seconds() };
}
