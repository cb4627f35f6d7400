import { once } from "node:events";
import { chownSync, existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { sweepLeftovers } from "../../../src/browser/sweep.js";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { daemonScript } from "../../support/browser/chromium-daemon.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { newScratchDirectory } from "../../support/killed-runs.js";
import { until } from "../../support/browser/chromium-until.js";
import { holdersOf, own } from "../../support/egress/namespaces.js";

const script = daemonScript("egress/daemon-of-namespaces.mjs");
/** Leads an ordinary user into the one user namespace that may be made there. */
const forbidding = [
  "unshare",
  "--user",
  "--map-root-user",
  "sh",
  "-c",
  'echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=64322 --map-group=64322 "$@"',
  "sh",
];
describe("of an ordinary user", () => {
  test("a daemon has them too: its browser's network holds its own proxy and nothing of the host", async () => {
    const { child, said } = await script.start("own", "ready", 64_322);
    const found = JSON.parse(said[0] ?? "") as Record<string, string>;
    expect(found).toEqual({
      heard: "greeting",
      host: "ECONNREFUSED",
      isOther: true,
      hasUser: true,
      addresses: ["eth0 inet 10.255.255.2/24", "lo inet 127.0.0.1/8", "lo inet6 ::1/128"],
    });
    child.kill();
    await once(child, "exit");
  });

  test("a daemon killed leaves neither a namespace nor who makes them", async () => {
    const { child, said } = await script.start("hold", "ready", 64_322);
    const [namespace = "", helper = ""] = said;
    expect(holdersOf(namespace)).toContain(`${child.pid}`);
    child.kill("SIGKILL");
    await once(child, "exit");
    await until("nobody in the namespace", () => holdersOf(namespace).length === 0);
    await until("the helper is gone", () => !existsSync(`/proc/${helper}`));
  });
});

test.each([
  ["root's", undefined],
  ["an ordinary user's", 64_322],
])("%s daemon, killed while a browser is in its namespace, leaves neither", async (_whose, uid) => {
  const scratchDirectory = newScratchDirectory();
  if (uid !== undefined) chownSync(scratchDirectory, uid, uid);
  const { child, said } = await script.start(scratchDirectory, "ready", uid);
  const [namespace = "", browsers] = said;
  expect(browsers).toBe(namespace);
  expect(namespace).not.toBe(own());
  expect(holdersOf(namespace).length).toBeGreaterThan(2);
  child.kill("SIGKILL");
  await once(child, "exit");
  await until("nobody in the namespace", () => holdersOf(namespace).length === 0);
  chownSync(scratchDirectory, 0, 0);
  const host = await openTestHost({ scratchDirectory });
  await sweepLeftovers(host);
  expect(await takeCensus(scratchDirectory, new Set())).toEqual(nothing);
  await host.close();
});

describe("where there can be no namespace, the reason is given", () => {
  test("to an ordinary user where no user namespaces are allowed", async () => {
    const { said } = await script.start("examine", "ready", forbidding);
    expect(JSON.parse(said[0] ?? "")).toEqual({
      kind: "unavailable",
      why: expect.stringMatching(/unshare.*No space left on device/) as string,
    });
  });
});
