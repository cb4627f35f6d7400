import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { type Site, openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";

const isRoot = process.getuid?.() === 0;
let host: BrowserHost;
let site: Site;
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterAll(() => Promise.all([host.close(), site.close()]));

/** What the kernel says of a process; nothing of one that has ended, as some do soon after the launch. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}
const fieldIn = (status: string, field: string): string =>
  new RegExp(`^${field}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "";

/** What bubblewrap has started; its own two processes, which no tenant can talk to, are the daemon's. */
function treeOf(chromium: Chromium): number[] {
  const childrenOf = (pid: number): number[] =>
    read(pid, `task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  const descendantsOf = (pid: number): number[] =>
    childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
  return childrenOf(chromium.pid).flatMap(descendantsOf);
}

describe.each(kinds)("%s", (_name, given) => {
  // One browser for all, and the last test takes its renderer.
  let chromium: Chromium;
  let client: PipeClient;
  beforeAll(async () => {
    process.env.REMUDA_TEST_SECRET = "the-secret-of-the-daemon";
    chromium = await launch({ ...given, memoryBytes: 500 * 2 ** 20 });
    delete process.env.REMUDA_TEST_SECRET;
    client = new PipeClient(chromium);
  });
  afterAll(killAll);

  test.runIf(isRoot)("no process of it is root's, and none may gain rights", async () => {
    const uid = `${chromium.isolation.uid}`;
    const statuses = treeOf(chromium).flatMap((pid) => read(pid, "status") || []);
    expect(statuses.length).toBeGreaterThan(2);
    for (const status of statuses) {
      expect(fieldIn(status, "Uid").split("\t")).toEqual([uid, uid, uid, uid]);
      expect(fieldIn(status, "Gid").split("\t")).toEqual([uid, uid, uid, uid]);
      expect(fieldIn(status, "Groups").trim()).toBe("");
      expect(fieldIn(status, "NoNewPrivs")).toBe("1");
      expect(fieldIn(status, "CapBnd")).toMatch(/^(?:0+|000001ffffffffff)$/);
    }
  });

  test("its renderers run in Chromium's sandbox, as it reports", async () => {
    expect(chromium.isolation.sandbox).not.toBe("none");
    // A renderer that runs script has entered its sandbox.
    await client.evaluate("1", await client.attach());
    const statuses = treeOf(chromium)
      .filter((pid) => read(pid, "cmdline").includes("--type=renderer"))
      .flatMap((pid) => read(pid, "status") || []);
    expect(statuses.length).toBeGreaterThan(0);
    for (const status of statuses) expect(fieldIn(status, "Seccomp")).toBe("2");
  });

  test("it finds no program by its name, xdg-open for one", () => {
    // Chromium's own write their title over their environment, which they have from bubblewrap's.
    const paths = [chromium.pid, ...treeOf(chromium)].flatMap(
      (pid) => /(?:^|\0)PATH=([^\0]*)/.exec(read(pid, "environ"))?.[1] ?? [],
    );
    expect(paths.length).toBeGreaterThan(0);
    const places = paths
      .flatMap((path) => path.split(":"))
      .map((place) => `/proc/${treeOf(chromium)[0]}/root${place}`);
    expect(places.filter((place) => existsSync(place)).flatMap((place) => readdirSync(place))).toEqual([]);
  });

  test.runIf(isRoot)("of what is mounted it may write to its own directories alone", () => {
    const { directories, pid } = chromium;
    const { profile, downloads, temporary, extensions } = directories;
    // Fields of proc_pid_mountinfo(5): the fifth is the place, the sixth begins with ro or rw.
    const mounted = read(treeOf(chromium)[0] ?? pid, "mountinfo")
      .split("\n")
      .filter(Boolean)
      .map((line) => line.split(" "));
    const writable = mounted
      .filter(([, , , , , how]) => how?.startsWith("rw"))
      .map(([, , , , place]) => place);
    const own = [profile, downloads, temporary, ...(given.engine === "chromium" ? [extensions] : [])];
    const others = ["/proc", "/tmp", "/dev/shm", "/dev/null", "/dev/zero", "/dev/urandom"];
    expect(writable.toSorted()).toEqual([...own, ...others].toSorted());
  });

  test("it knows nothing of the daemon's environment", async () => {
    for (const pid of treeOf(chromium)) expect(read(pid, "environ")).not.toContain("the-secret");
  });

  test.runIf(isRoot)("it reads no file that is the daemon's alone, nor its neighbour's", async () => {
    const neighbour = await launch({});
    const directory = await mkdtemp("/var/tmp/remuda-test-");
    const key = join(directory, "key");
    await writeFile(key, "held", { mode: 0o600 });
    const held = join(neighbour.directories.profile, "held");
    await writeFile(held, "held");
    await chown(held, neighbour.isolation.uid ?? 0, neighbour.isolation.uid ?? 0);
    const session = await client.attach();
    for (const path of [key, held])
      expect(await client.open(`file://${path}`, session)).toMatch(
        /ERR_(ACCESS_DENIED|FILE_NOT_FOUND|BLOCKED_BY_ADMINISTRATOR)/,
      );
    await Promise.all([neighbour.kill(), rm(directory, { recursive: true })]);
  });

  const closed = given.engine === "chromium" ? ["", "view-source:"] : [];
  test.runIf(isRoot).for(closed)("policy closes %sfile:", async (scheme) => {
    expect(chromium.isolation).toMatchObject({ files: "own", tenants: "many", rung: "root-mounts" });
    expect(await client.open(`${scheme}file:///etc/hostname`, await client.attach())).toBe(
      "net::ERR_BLOCKED_BY_ADMINISTRATOR",
    );
  });

  test("nothing of a page that crashes is kept on disk, and its processes are Chromium's own", async () => {
    const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
    const session = await client.attach(`${targetId}`);
    await client.evaluate("1", session);
    client.send("Page.crash", {}, session).catch(() => {});
    const isTold = (): boolean =>
      client.events.some(
        ({ method, params }) => method === "Target.targetCrashed" && params?.["targetId"] === targetId,
      );
    await until("the page's end", isTold);
    const namesKept = (): readonly string[] | undefined => {
      try {
        return readdirSync(chromium.directories.root, { recursive: true }).map(String);
      } catch {
        // Chromium has just removed a directory of its own.
        return undefined;
      }
    };
    const kept = await until("what is kept", namesKept);
    expect(kept.filter((name) => name.endsWith(".dmp"))).toEqual([]);
    expect(treeOf(chromium).filter((pid) => read(pid, "comm").startsWith("chrome_crash"))).toEqual([]);
    await client.send("Target.closeTarget", { targetId });
  });

  // Chromium starts the process for sound by itself, and not by forking one that it has.
  test("a page plays sound", async () => {
    const session = await client.attach();
    const played = `(async () => {
      const context = new AudioContext();
      const tone = new OscillatorNode(context);
      tone.connect(context.destination);
      const over = new Promise((resolve) => tone.addEventListener("ended", resolve));
      tone.start();
      tone.stop(context.currentTime + 0.1);
      await over;
      return context.currentTime > 0;
    })()`;
    expect(await client.evaluate(played, session)).toBe(true);
  });

  test.runIf(isRoot)(
    "a page that takes more memory than its class loses its renderer, and the browser lives",
    async () => {
      expect(chromium.isolation.limits.memory).toMatch(/^cgroup-v/);
      const neighbour = await launch({});
      const session = await client.attach();
      await client.send("Inspector.enable", {}, session);
      client
        .evaluate("globalThis.held = []; for (;;) held.push(new Uint8Array(2 ** 24).fill(1))", session)
        .catch(() => {});
      const isCrashed = (): boolean =>
        client.events.some(
          ({ method, sessionId }) => method === "Inspector.targetCrashed" && sessionId === session,
        );
      await Promise.race([until("the renderer's end", isCrashed, 100_000), chromium.exited]);
      await neighbour.probe(20_000);
      await neighbour.kill();
      // A window's compositor allocates as well, so that the kernel may end a headful browser besides while
      // the renderer's pages are still being freed (docs/isolation.md, "Limits").
      if (given.headless === false && !(await isAlive(chromium)))
        return expect((await chromium.exited).signal).toBe("SIGKILL");
      await chromium.probe(20_000);
      expect(await chromium.reset(100_000)).toEqual({ differences: [] });
    },
  );
});

const isAlive = (chromium: Chromium): Promise<boolean> =>
  chromium.probe(20_000).then(
    () => true,
    () => false,
  );

const withPolicy = kinds.filter(([, { engine }]) => engine === "chromium");
test.runIf(isRoot).for(withPolicy)(
  "%s: policy closes the page that could undo policies",
  async ([, given]) => {
    const client = new PipeClient(await launch(given));
    expect(await client.open("chrome://policy/test", await client.attach())).toBe(
      "net::ERR_BLOCKED_BY_ADMINISTRATOR",
    );
    await killAll();
  },
);
