import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { extensionZip } from "../support/archive/zip-bytes.js";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";

/** Leads an ordinary user into the one user namespace that may be made there. */
const confined = [
  "unshare",
  "--user",
  "--map-root-user",
  "sh",
  "-c",
  'echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=64322 --map-group=64322 "$@"',
  "sh",
];
/** Leads root into a user namespace which has the uids of browsers too, and below which none may be made. */
const confinedRoot = [
  "sh",
  "-c",
  `(while [ "$(readlink /proc/$$/ns/user)" = "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
    for map in uid_map gid_map; do echo "0 0 1300000" > /proc/$$/$map; done) &
  exec unshare --user sh -c '
    until grep -q . /proc/self/gid_map; do sleep 0.01; done
    exec sh -c "echo 0 > /proc/sys/user/max_user_namespaces && exec \\"\\$@\\"" sh "$@"' sh "$@"`,
  "sh",
];
const ordinary = ["unshare", "--user", "--map-user=64322", "--map-group=64322"];
/** Covers a path of the machine for what is started, as a container's runtime does. */
const masked = (path: string): string[] => [
  "unshare",
  "--mount",
  "--propagation",
  "private",
  "sh",
  "-c",
  `mount --bind /dev/null ${path} && exec "$@"`,
  "sh",
];

async function start(through: readonly string[], required?: string): Promise<DaemonProcess> {
  const node = required === undefined ? {} : { require_isolation: required };
  return await spawnDaemon(new DaemonPlace({ file: { node }, drawsKeys: true }), through);
}

/** The lines of its log with that message. */
const logged = ({ log }: DaemonProcess, message: string): readonly Record<string, unknown>[] =>
  log
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === message);

const refusedRungs = (daemon: DaemonProcess): readonly unknown[] =>
  logged(daemon, "isolation refused").map(({ rung }) => rung);

async function launch(
  daemon: DaemonProcess,
  engine = "headless-shell",
): Promise<{ id: string; isolation: Record<string, unknown> }> {
  const made = await daemon.call("POST /browsers", { headless: true, engine });
  expect(made).toMatchObject({ status: 200 });
  const { session_id: id } = made.body as Lease;
  const { body } = await daemon.call(`GET /browsers/${id}`);
  return { id, isolation: (body as { isolation: Record<string, unknown> }).isolation };
}

async function giveExtension(daemon: DaemonProcess, id: string, permissions: string[]): Promise<Response> {
  const form = new FormData();
  form.set("extensions[0][name]", "given");
  const zip = new Blob([new Uint8Array(extensionZip([], { permissions }))]);
  form.set("extensions[0][zip_file]", zip, "given.zip");
  const headers = { authorization: `Bearer ${daemon.apiKey}` };
  return await fetch(`${daemon.url}/browsers/${id}/extensions`, { method: "POST", headers, body: form });
}

/** What a daemon that launches nothing says of it, wherever it is asked. */
async function expectRefusal(daemon: DaemonProcess, why: RegExp): Promise<void> {
  const ready = await until("its answer", async () => {
    const got = await daemon.call("GET /readyz");
    return why.test(got.text) ? got : undefined;
  });
  expect(ready.status).toBe(503);
  expect(ready.text).toContain("node.require_isolation");
  expect(await daemon.call("POST /browser_pools", { name: "none", size: 1, headless: true })).toMatchObject({
    status: 201,
  });
  await until("that the pool tells", async () => {
    const { body } = await daemon.call("GET /browser_pools/none");
    return why.test(JSON.stringify((body as { fill?: object }).fill ?? {}));
  });
  expect(await daemon.browsersOf("none")).toEqual([]);
  expect(logged(daemon, "no isolation that is allowed holds; nothing is launched")).toMatchObject([
    {
      level: "error",
      why: expect.stringMatching(why) as string,
      see: "docs/isolation.md#where-nothing-is-launched",
    },
  ]);
  expect(logged(daemon, "browser host examined")).toEqual([]);
}

describe.runIf(process.getuid?.() === 0)("the rung that holds", () => {
  test("of an ordinary user whose /proc is covered shows browsers that others run, and no more", async () => {
    const daemon = await start([...masked("/proc/interrupts"), ...ordinary]);
    const { isolation } = await launch(daemon);
    expect(isolation).toMatchObject({
      rung: "shared-proc",
      files: "own",
      tenants: "many",
      sandbox: "namespace",
    });
    expect(refusedRungs(daemon)).toEqual(["user-namespace"]);
    expect(logged(daemon, "isolation refused")[0]?.["why"]).toMatch(/mount proc/);
    expect(logged(daemon, "browser host examined")).toMatchObject([{ rung: "shared-proc" }]);
    expect(await daemon.call("GET /readyz")).toMatchObject({ status: 200 });
    await daemon.stop();
  });

  test("where no further user namespace is allowed inside has no sandbox of Chromium's, and is taken only if it is asked for", async () => {
    const refused = await start(confinedRoot);
    await expectRefusal(refused, /root-mounts: .*user-namespace: .*shared-proc: /);
    expect(refusedRungs(refused)).toEqual(["root-mounts", "user-namespace", "shared-proc"]);
    await refused.stop();
    const daemon = await start(confinedRoot, "no-sandbox");
    const { isolation } = await launch(daemon);
    expect(isolation).toMatchObject({ rung: "no-sandbox", files: "own", tenants: "many", sandbox: "none" });
    expect(await daemon.call("GET /readyz")).toMatchObject({ status: 200 });
    await daemon.stop();
  });

  test("without a private root is for one tenant, which is said, and extensions that come to files are refused", async () => {
    const daemon = await start(masked("/usr/bin/bwrap"), "none");
    expect(refusedRungs(daemon)).toEqual([
      "root-mounts",
      "user-namespace",
      "shared-proc",
      "no-sandbox",
      "no-sandbox",
    ]);
    expect(logged(daemon, "isolation refused")[0]?.["why"]).toMatch(/bubblewrap.*not installed/);
    expect(logged(daemon, "browsers see the host's files: one tenant only")).toMatchObject([
      { level: "warn", rung: "none" },
    ]);
    const { id, isolation } = await launch(daemon, "chromium");
    expect(isolation).toMatchObject({ rung: "none", files: "host", tenants: "one" });
    expect(isolation["uid"]).toBeGreaterThanOrEqual(200_000);
    const refused = await giveExtension(daemon, id, ["downloads"]);
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringMatching(/given.*downloads.*see the host's files/) as string,
    ]);
    expect((await giveExtension(daemon, id, ["storage"])).status).toBe(201);
    expect(await daemon.call("GET /readyz")).toMatchObject({ status: 200 });
    await daemon.stop();
  });

  test("is never one on which browsers of the daemon's own uid would come to its keys", async () => {
    const daemon = await start(confined, "none");
    expect(existsSync(join(daemon.place.dataDir, "cluster-secret"))).toBe(true);
    await expectRefusal(daemon, /none: browsers would have the daemon's uid/);
    await daemon.stop();
  });

  test("is none where nothing bounds what a browser opens: the package is named", async () => {
    const daemon = await start(masked("/usr/bin/prlimit"), "none");
    await expectRefusal(daemon, /prlimit \(util-linux\) is not installed/);
    await daemon.stop();
  });
});
