import { Seal } from "../base/crypto/seal.js";
import { Secret } from "../base/crypto/secret.js";
import { systemClock } from "../base/clock.js";
import { textOf } from "../base/log.js";
import { Stops } from "../base/stops.js";
import { type Config, openConfig } from "../config/config.js";
import { encryptionKey } from "../config/data-directory.js";
import { openLog } from "../observe/log.js";
import { privateRedisPathsOf } from "../store/private/paths.js";
import type { RewrapReport } from "../vault/encryption/rewrap.js";
import { packageRoot } from "./shared.js";
import { openStores } from "./stores.js";
import { openVaultKeyring, rewrapAll } from "./vault-keys.js";

const usage = `usage: npm run vault:rewrap

Wraps the key of every vault by vault.keys.provider that another has wrapped, with the settings that the daemon has;
values stay as they are. It may be stopped and run again at any time, beside daemons too. A daemon with a Redis
of its own has to be running.

It ends with 0 where the provider has wrapped all, 1 where some are left, 2 where it could not begin.`;

const exitCodes = { whole: 0, left: 1, unable: 2 } as const;
const contactMs = 10_000;

/** The command `vault:rewrap` (docs/vault.md#how-values-are-kept): says what came of it; its exit code. */
export async function rewrapCommand(args: readonly string[], say: (line: string) => void): Promise<number> {
  if (args.length > 0) {
    say(args[0] === "--help" ? usage : `${args.join(" ")} is not understood\n\n${usage}`);
    return args[0] === "--help" ? exitCodes.whole : exitCodes.unable;
  }
  const opened = openConfig({ packageRoot });
  if (opened.kind === "refused") {
    say(`The configuration is refused (${opened.file}):\n${opened.faults.join("\n")}`);
    return exitCodes.unable;
  }
  try {
    const report = await rewrapWith(opened.config);
    linesOf(report, opened.config.vault.keys.provider).forEach(say);
    return report.left.length === 0 ? exitCodes.whole : exitCodes.left;
  } catch (error) {
    say(`The keys of vaults could not be wrapped anew: ${textOf(error)}`);
    return exitCodes.unable;
  }
}

async function rewrapWith(config: Config): Promise<RewrapReport> {
  const { log, close } = openLog({ ...config.log, descriptor: 2, clock: systemClock });
  const stops = new Stops(systemClock, config.stop.stepMs);
  stops.add("log", () => close(config.log.flushLimitMs));
  const url = config.redis.url?.reveal() ?? (await privateRedisPathsOf(config.dataDir)).socket;
  const giveUp = AbortSignal.timeout(contactMs);
  const { stores, stops: stopsOfStores } = openStores(config, {
    log,
    clock: systemClock,
    stopping: giveUp,
    hurry: giveUp,
    fail: (error) => log.error({ error: textOf(error) }, "a part has failed"),
    redisUrl: new Secret(url),
  });
  stops.add("stores", () => stopsOfStores.run());
  try {
    await stores.contact();
    const keyring = openVaultKeyring(config, new Seal(await encryptionKey(config)), systemClock);
    return await rewrapAll(stores, keyring);
  } finally {
    await stops.run();
  }
}

const linesOf = ({ wrapped, kept, left }: RewrapReport, provider: string): readonly string[] => [
  ...left.map(({ project, vault, why }) => `vault ${vault} of project ${project} is left: ${why}`),
  `${wrapped} keys of vaults wrapped anew, ${kept} were wrapped by ${provider} already, ${left.length} are left`,
];
