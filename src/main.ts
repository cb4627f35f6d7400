import { dirname, join } from "node:path";
import { systemClock } from "./base/clock.js";
import { type Config, openConfig } from "./config/config.js";
import { parseArguments } from "./config/arguments.js";
import { helpText } from "./config/table.js";
import { runDaemon } from "./daemon/shutdown.js";
import { openLog } from "./observe/log.js";
import { shortenSlices } from "./daemon/time-slice.js";
import { setHeapLimits } from "./daemon/heap-limits.js";

// This file runs as dist/src/main.js.
const packageRoot = join(dirname(import.meta.dirname), "..");

const exitCodes = { asked: 0, failed: 1, refused: 2 } as const;

function refuse(lines: readonly string[]): number {
  process.stderr.write(`${lines.join("\n")}\n`);
  return exitCodes.refused;
}

const say = (text: string): void => void process.stdout.write(text);

async function serve(config: Config, strange: readonly string[]): Promise<number> {
  setHeapLimits();
  // Loaded late: what a wrong configuration or --help is answered with needs none of it.
  const { startOf } = await import("./daemon/roles.js");
  const { log, close } = openLog({ ...config.log, descriptor: 1, clock: systemClock });
  if (strange.length > 0)
    log.warn({ variables: strange }, "variables of the environment that are no settings were passed over");
  const hosts = config.egress.privateHosts;
  if (hosts.length > 0)
    log.warn({ hosts }, "PRIVATE HOSTS ARE OPEN to every browser whose network does not say otherwise");
  if (!(await shortenSlices())) log.info({}, "time slices stay as they are");
  const limits = { stopMs: config.drain.limitMs + config.stop.limitMs, hurriedMs: config.stop.hurriedMs };
  try {
    return await runDaemon(startOf(config), { log, clock: systemClock, signals: process, limits, say });
  } finally {
    await close(config.log.flushLimitMs);
  }
}

async function main(args: readonly string[]): Promise<number> {
  const asked = parseArguments(args);
  if (asked.kind === "refused") return refuse([asked.fault]);
  if (asked.kind === "help") {
    process.stdout.write(`${helpText()}\n`);
    return exitCodes.asked;
  }
  const sayLine = (line: string): void => say(`${line}\n`);
  if (asked.kind === "verify-audit") {
    const { verifyAudit } = await import("./daemon/verify-audit.js");
    return await verifyAudit(asked.args, sayLine);
  }
  if (asked.kind === "rewrap-vaults") {
    const { rewrapCommand } = await import("./daemon/rewrap-vaults.js");
    return await rewrapCommand(asked.args, sayLine);
  }
  const opened = openConfig({ packageRoot, ...asked });
  if (opened.kind === "opened") return await serve(opened.config, opened.strangeVariables);
  return refuse([
    `The configuration is refused (${opened.file}):`,
    ...opened.faults.map((fault) => `  ${fault}`),
  ]);
}

process.exit(await main(process.argv.slice(2)));
