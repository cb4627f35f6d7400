import { execFile } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bound } from "../../support/bound.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { compiled } from "../../support/compiled.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";

const next = "the-encryption-key-after-this-one";

let fake: FakeChromium;
let place: DaemonPlace;
beforeAll(async () => {
  fake = await makeFakeChromium();
  place = new DaemonPlace({ file: standIn(fake) });
});
afterAll(async () => {
  place.remove();
  await fake.remove();
});

/** The command, with the settings of the place and these of its environment. */
function rewrap(environment: Readonly<Record<string, string>>): Promise<{ code: number; stdout: string }> {
  const [program = "", ...args] = bound(process.execPath, join(compiled, "src/main.js"), "rewrap-vaults");
  const env = { ...place.environment, ...environment };
  return new Promise((resolve) => {
    execFile(program, args, { env, timeout: 60_000 }, (error, stdout) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout }),
    );
  });
}

test("the keys of vaults are wrapped anew beside a daemon, each once, and what cannot be is named", async () => {
  const daemon = await spawnDaemon(place);
  const made: string[] = [];
  for (const name of ["one", "other"]) {
    const { body } = await daemon.call("POST /vaults", { name });
    made.push((body as { id: string }).id);
  }
  const own = place.environment["REMUDA_ENCRYPTION_KEY"] ?? "";
  const alone = await rewrap({ REMUDA_ENCRYPTION_KEY: next });
  expect(alone.code).toBe(1);
  for (const id of made) expect(alone.stdout).toContain(`vault ${id} of project`);
  expect(alone.stdout).toContain(
    "0 keys of vaults wrapped anew, 0 were wrapped by local already, 2 are left",
  );
  expect((await daemon.call("GET /vaults/one/items")).status).toBe(200);

  const both = { REMUDA_ENCRYPTION_KEY: next, REMUDA_PREVIOUS_ENCRYPTION_KEY: own };
  expect(await rewrap(both)).toEqual({
    code: 0,
    stdout: "2 keys of vaults wrapped anew, 0 were wrapped by local already, 0 are left\n",
  });
  expect(await rewrap({ REMUDA_ENCRYPTION_KEY: next })).toEqual({
    code: 0,
    stdout: "0 keys of vaults wrapped anew, 2 were wrapped by local already, 0 are left\n",
  });
  await daemon.end("SIGTERM");
});

test("where Redis is not there nothing is begun, and that is said", async () => {
  const found = await rewrap({});
  expect(found.code).toBe(2);
  expect(found.stdout).toContain("The keys of vaults could not be wrapped anew");
});
