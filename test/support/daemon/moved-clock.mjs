// Loaded into a daemon before its own modules: its wall clock is ahead by CLOCK_AHEAD_MS, and by what the file
// CLOCK_FILE says once SIGUSR2 has come; the file is removed when that is so. Monotonic clocks stay as they are.
import { readFileSync, rmSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const RealDate = Date;
let aheadMs = Number(process.env["CLOCK_AHEAD_MS"] ?? 0);
const now = () => RealDate.now() + aheadMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, asked) => Reflect.construct(target, given.length === 0 ? [now()] : given, asked),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});

if (isMainThread)
  process.on("SIGUSR2", () => {
    aheadMs = Number(readFileSync(process.env["CLOCK_FILE"], "utf8"));
    rmSync(process.env["CLOCK_FILE"]);
  });
