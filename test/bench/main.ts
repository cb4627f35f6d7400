import { benchAccess } from "./access.js";
import { benchBidi } from "./bidi.js";
import { benchControl } from "./control.js";
import { benchCycles } from "./cycles.js";
import { benchEgress } from "./egress.js";
import { benchExtensions } from "./extensions.js";
import { benchFloods } from "./floods.js";
import { benchGateway } from "./gateway.js";
import { benchJournal } from "./journal.js";
import { benchLaunches } from "./launches.js";
import { describeMachine } from "./support/machine.js";
import { benchMemory } from "./memory.js";
import { endHelpers } from "./support/processes.js";
import { benchProfile } from "./profile.js";
import { benchRest } from "./rest.js";
import { type Report, textOf } from "./support/report.js";
import { stopRuns } from "./support/runs.js";
import { benchScale } from "./scale.js";
import { benchScripts } from "./scripts.js";
import { benchSession } from "./session.js";
import { benchStandby } from "./standby.js";
import { benchTelemetry } from "./telemetry.js";
import { benchTiers } from "./tiers.js";
import { benchVault } from "./vault.js";
import { benchWalls } from "./walls.js";

const runs = 5;
const parts: Readonly<Record<string, () => Promise<Report>>> = {
  control: () => benchControl({ runs, sampleMs: 700 }),
  access: () => benchAccess({ runs: 21, sampleMs: 700 }),
  session: () => benchSession({ runs }),
  standby: () => benchStandby({ runs }),
  launches: () => benchLaunches({ runs }),
  cycles: () => benchCycles({ runs }),
  gateway: () => benchGateway({ runs }),
  telemetry: () => benchTelemetry({ runs }),
  bidi: () => benchBidi({ runs: 9 }),
  floods: () => benchFloods({ runs: 3 }),
  egress: () => benchEgress({ runs }),
  tiers: () => benchTiers({ runs }),
  walls: () => benchWalls({ runs }),
  extensions: () => benchExtensions({ runs }),
  profile: () => benchProfile({ runs }),
  memory: () => benchMemory(),
  vault: () => benchVault({ runs: 31, sampleMs: 500 }),
  rest: () => benchRest({ forMs: 30_000 }),
  scale: () => benchScale(),
  scripts: () => benchScripts(),
  journal: () => benchJournal({ forMs: 30_000 }),
};

const usage = `npm run bench -- [parts]

Runs those parts, or all, one after the other: ${Object.keys(parts).join(", ")}`;

async function main(asked: readonly string[]): Promise<void> {
  if (asked.includes("--help")) return console.log(usage);
  const unknown = asked.filter((name) => !(name in parts));
  if (unknown.length > 0) throw new Error(`${unknown.join(", ")}: there is no such part\n\n${usage}`);
  console.log(
    `Interleaved pairs in one run, ${runs} runs, medians; ratios are medians of the pairs' ratios. Everything on loopback.\n${await describeMachine()}\n`,
  );
  const wanted = Object.entries(parts).filter(([name]) => asked.length === 0 || asked.includes(name));
  for (const [, run] of wanted) console.log(textOf(await run()));
}

function stop(): void {
  stopRuns();
  endHelpers();
}
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
const code = await main(process.argv.slice(2)).then(
  () => 0,
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  },
);
// A browser that Playwright was just launching goes with the process.
process.exit(code);
