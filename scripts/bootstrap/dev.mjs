import { spawn } from "node:child_process";
import { watch as watchFolder } from "node:fs";
import { join } from "node:path";
import { say } from "./say.mjs";

const settleMs = 200;

/**
 * Starts the daemon, and again after every change of the sources or the configuration, until a signal ends
 * both.
 */
export function watch(root, args) {
  return new Promise((resolve) => {
    let child;
    let timer;
    let isEnding = false;
    const start = () => {
      if (isEnding) return resolve(0);
      child = spawn(process.execPath, [join(root, "scripts/bootstrap.mjs"), "start", ...args], {
        stdio: "inherit",
      });
      child.once("close", onEnd);
    };
    const onEnd = (code) => {
      child = undefined;
      if (isEnding) resolve(0);
      else if (timer === undefined) say(`the daemon ended (${code}); waiting for a change`);
    };
    const restart = () => {
      timer = undefined;
      if (!child) return start();
      child.removeListener("close", onEnd);
      child.once("close", start);
      child.kill("SIGTERM");
    };
    const onChange = () => {
      if (isEnding) return;
      clearTimeout(timer);
      timer = setTimeout(restart, settleMs);
    };
    const end = (signal) => {
      isEnding = true;
      clearTimeout(timer);
      if (child) child.kill(signal);
      else resolve(0);
    };
    for (const folder of ["src", "config"]) watchFolder(join(root, folder), { recursive: true }, onChange);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, end);
    start();
  });
}
