import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { BrowserHost } from "../../../src/browser/host.js";
import { blockedPermissions as blockedByPolicy } from "../../../src/browser/policy/managed-policy.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { blockedPermissions, manifestCases, textOf } from "../../support/archive/manifest-corpus.js";

let host: BrowserHost;
let client: PipeClient;
const { launch, killAll } = makeLauncher(() => host);
// Where a browser of another uid can read.
const work = mkdtempSync("/var/tmp/remuda-test-manifests-");
chmodSync(work, 0o755);
beforeAll(async () => {
  host = await openTestHost({ readablePaths: [work] });
  client = new PipeClient(await launch({ engine: "chromium" }));
});
afterAll(async () => {
  await killAll();
  await host.close();
  rmSync(work, { recursive: true });
});

const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

test("the rules are held against the policy that browsers have", () => {
  expect(blockedPermissions).toEqual(blockedByPolicy);
});

test(
  "the installed Chromium loads and refuses what the rules of manifests accept and refuse",
  { timeout: 60_000 },
  async () => {
    const verdicts: string[] = [];
    const expected: string[] = [];
    for (const [at, one] of manifestCases.entries()) {
      const path = join(work, String(at));
      for (const file of one.files ?? []) write(join(path, file), file.endsWith(".json") ? "{}" : "0");
      write(join(path, "manifest.json"), textOf(one));
      const refused = await client.send("Extensions.loadUnpacked", { path }).then(
        () => false,
        () => true,
      );
      verdicts.push(`${one.what}: ${refused ? "refused" : "loaded"}`);
      expected.push(`${one.what}: ${one.fault === undefined ? "loaded" : "refused"}`);
    }
    expect(verdicts).toEqual(expected);
  },
);
