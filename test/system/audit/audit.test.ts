import type Kernel from "@onkernel/sdk";
import { execFile } from "node:child_process";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { bound } from "../../support/bound.js";
import { compiled } from "../../support/compiled.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

/** The whole size of the proof is 50,000 (CONTRIBUTING.md). */
const requests = Number(process.env["AUDIT_REQUESTS"] ?? 1200);
/** At least so many daemons are killed, and as many more as it takes until so many requests are answered. */
const kills = 3;
const callers = 8;
/** All tests here read what the flood has left. */
const limitMs = 120_000 + requests * 40;
/** What was answered is on record by then (docs/audit.md#when-an-entry-is-on-record). */
const writtenMs = 50;
/**
 * The writer's timer, and Redis's answer to it, come as late as the machine gives the daemon and Redis their
 * turn, while every clock goes on, the daemon's own as well: a bound in ms would judge the machine. So the
 * time is over for an entry when the daemon has answered its caller so often again, each time to a request
 * that was sent after the time. Each answer is a look-up in Redis on the writer's own connection, which
 * answers in turn: the timer had its turn before the first was answered, a batch that was under way was
 * answered before the second, and what was sent then was taken before the third. How old the last answers are
 * is not judged: a driven clock proves that entries are sent within 20 ms, or as soon as the write before is
 * over (test/audit/writer.test.ts).
 */
const turnsSince = 3;
const patient = { command_timeout_ms: 20_000 };

let redis: TestRedis;
let place: DaemonPlace;
beforeAll(async () => {
  redis = await startRedis();
  place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    // Small, so that sealing goes on all the while; and a Redis that waits for a processor is no fault.
    file: { audit: { hot_bytes: 4096, segment_entries: 200, seal_period_seconds: 1 }, redis: patient },
  });
});
afterAll(async () => {
  await redis.stop();
  place.remove();
});

interface Answer {
  readonly path: string;
  readonly at: number;
}

const noAnswers = (): Answer[][] => Array.from({ length: callers }, () => []);

/**
 * Callers that ask as fast as they are answered, until the daemon is gone or each has asked so often: what
 * each was answered, one after the other. Each path is asked for once.
 */
function flood(
  daemon: DaemonProcess,
  run: number,
  { each = Infinity, owns = noAnswers() }: { each?: number; owns?: readonly Answer[][] },
): Promise<readonly (readonly Answer[])[]> {
  const call = async (own: Answer[], caller: number): Promise<readonly Answer[]> => {
    for (let count = 0; count < each; count += 1) {
      const path = `/browser_pools/run${run}-caller${caller}-${count}`;
      const got = await daemon.call(`GET ${path}`).catch(() => undefined);
      if (got === undefined) break;
      expect(got.status, got.text).toBe(404);
      own.push({ path, at: performance.now() });
    }
    return own;
  };
  return Promise.all(owns.map(call));
}

const range = () => ({
  start: new Date(Date.now() - 3_600_000).toISOString(),
  end: new Date(Date.now() + 3_600_000).toISOString(),
});

type Query = ReturnType<typeof range> & { search?: string };

async function listed(kernel: Kernel, query: Query): Promise<Kernel.AuditLogEntry[]> {
  const entries: Kernel.AuditLogEntry[] = [];
  for await (const entry of kernel.auditLogs.list(query)) entries.push(entry);
  return entries;
}
const pathsOf = (entries: readonly Kernel.AuditLogEntry[]): string[] => entries.map(({ path }) => path);

async function downloaded(kernel: Kernel, query: Query) {
  const chunks: Uint8Array[] = [];
  await kernel.auditLogs.download(query, {
    write: (chunk: Uint8Array) => void chunks.push(chunk.slice()),
  } as never);
  const text = gunzipSync(Buffer.concat(chunks)).toString().trimEnd();
  return text.split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** What one caller was answered, and when the daemon that answered was killed. */
interface Flooded {
  readonly own: readonly Answer[];
  readonly killedAt: number;
}
const answeredIn = (all: readonly Pick<Flooded, "own">[]): number =>
  all.reduce((sum, { own }) => sum + own.length, 0);

/** How many of its answers had to be on record when the daemon was killed: all but the last. */
function dueOf(own: readonly Answer[]): number {
  const sentAt = (index: number): number => own[index - 1]?.at ?? -Infinity;
  const lastInTime = sentAt(own.length - turnsSince) - writtenMs;
  return own.filter(({ at }) => at <= lastInTime).length;
}

/** Kills one daemon after the other amid a flood, until so many requests were answered as there are to be. */
async function floodAndKill(): Promise<readonly Flooded[]> {
  const all: Flooded[] = [];
  for (let run = 0; run < kills || answeredIn(all) < requests; run += 1) {
    const daemon = await spawnDaemon(place);
    const owns = noAnswers();
    const flooding = flood(daemon, run, { owns });
    // At some moment of the flood: what is asked then fails.
    const enough = (requests / kills) * (0.5 + Math.random());
    const isTime = (): boolean =>
      owns.every((own) => dueOf(own) > 0) && answeredIn(owns.map((own) => ({ own }))) >= enough;
    await until("answers that have to be on record", isTime, limitMs);
    const killedAt = performance.now();
    await daemon.end("SIGKILL");
    all.push(...(await flooding).map((own) => ({ own, killedAt })));
  }
  return all;
}

/** The figures of the whole proof, for whoever runs it. */
function tell(told: {
  readonly all: readonly Flooded[];
  readonly found: readonly string[];
  readonly lostAges: readonly number[];
}): void {
  if (!process.env["AUDIT_REQUESTS"]) return;
  const { all, found, lostAges } = told;
  const there = new Set(found);
  const missing = all.flatMap(({ own }) => own.filter(({ path }) => !there.has(path)));
  const daemons = new Set(all.map(({ killedAt }) => killedAt)).size;
  console.log(
    [
      `${answeredIn(all)} requests answered, ${daemons} kills (SIGKILL)`,
      `${found.length} entries, ${found.length - there.size} of them double`,
      `${missing.length} answered and missing, the oldest answered ${Math.max(0, ...lostAges).toFixed(1)} ms before a kill`,
    ].join("; "),
  );
}

test(
  "of what a daemon has answered, a kill takes only the last from the log, and nothing is there twice",
  async () => {
    const all = await floodAndKill();
    const daemon = await spawnDaemon(place);
    const kernel = daemon.kernel();
    const query = { ...range(), search: "/browser_pools/run" };
    const entries = await listed(kernel, query);
    const found = pathsOf(entries);
    const there = new Set(found);
    const lostAges: number[] = [];
    for (const { own, killedAt } of all) {
      const lost = own.findIndex(({ path }) => !there.has(path));
      if (lost < 0) continue;
      // The log has the order in which a caller was answered, so that only the last can be lost.
      expect(own.slice(lost).filter(({ path }) => there.has(path))).toEqual([]);
      expect(own.slice(lost, dueOf(own)).map(({ at }) => killedAt - at)).toEqual([]);
      lostAges.push(killedAt - (own[lost]?.at ?? 0));
    }
    tell({ all, found, lostAges });
    expect(there.size).toBe(found.length);

    const rows = await downloaded(kernel, query);
    expect(rows.map((row) => JSON.stringify({ ...row, event_id: undefined }))).toEqual(
      entries.map((entry) => JSON.stringify(entry)),
    );
    expect(new Set(rows.map(({ event_id: id }) => id)).size).toBe(rows.length);

    // Pages are read while entries come and are sealed.
    const [listedMeanwhile] = await Promise.all([listed(kernel, query), flood(daemon, 99, { each: 20 })]);
    const seen = pathsOf(listedMeanwhile);
    const isOld = (path: string): boolean => !path.startsWith("/browser_pools/run99-");
    expect(seen.filter(isOld)).toEqual(found);
    expect(new Set(seen).size).toBe(seen.length);
    await daemon.end("SIGTERM");
  },
  limitMs,
);

async function newestSegment(): Promise<{ rows: string }> {
  const client = redis.client();
  const [record = ""] = await client.zrange("remuda:{audit}:auditSegments", "-1", "-1");
  await client.quit();
  return JSON.parse(record) as { rows: string };
}

/** The command that looks at the log, with the settings of the place. */
function verify(...args: string[]): Promise<{ code: number; stdout: string }> {
  const [program = "", ...rest] = bound(process.execPath, join(compiled, "src/main.js"), "verify-audit");
  return new Promise((resolve) => {
    execFile(program, [...rest, ...args], { env: place.environment, timeout: limitMs }, (error, stdout) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout }),
    );
  });
}

test(
  "the command tells beside a sealing daemon that the log is whole, and afterwards what is lost of it",
  async () => {
    const daemon = await spawnDaemon(place);
    await flood(daemon, 98, { each: 30 });
    const [whole] = await Promise.all([verify(), flood(daemon, 97, { each: 30 })]);
    expect(whole).toMatchObject({ code: 0, stdout: expect.stringMatching(/ 0 faults\n.*\nhead: \d+:/) });
    await daemon.end("SIGTERM");
    const head = /^head: (.*)$/m.exec(whole.stdout)?.[1] ?? "";
    expect(await verify(`--head=${head}`)).toMatchObject({ code: 0 });
    const other = head.slice(0, -1) + (head.endsWith("0") ? "1" : "0");
    expect(
      await verify(`--head=${other}`, "--from=2020-01-01T00:00:00Z", "--to=2020-01-02T00:00:00Z"),
    ).toEqual({
      code: 1,
      stdout: expect.stringMatching(
        /^segment \d+: is not the one that was noted down[^]*\n0 segments/,
      ) as string,
    });
    const { rows } = await newestSegment();
    const archive = join(place.dataDir, "archives", rows.slice(0, 2), rows.slice(2, 4), rows);
    await rename(archive, `${archive}.lost`);
    expect(await verify()).toEqual({
      code: 1,
      stdout: expect.stringMatching(
        /^segment \d+: cannot be read: An archive .* is not in the store\n/,
      ) as string,
    });
    await rename(`${archive}.lost`, archive);
    expect(await verify("--since=yesterday")).toMatchObject({ code: 2 });
  },
  limitMs,
);

test(
  "the official client reads every field, page by page, and is told what is wrong with a range",
  async () => {
    const daemon = await spawnDaemon(place);
    await daemon.call(
      "DELETE /browser_pools/fields?token=secret",
      { force: true },
      { "user-agent": "tester/1" },
    );
    await fetch(`${daemon.url}/browser_pools/fields`, { headers: { authorization: "Bearer nobody" } });
    await daemon.end("SIGTERM");

    const next = await spawnDaemon(place);
    const client = next.kernel({ maxRetries: 0 });
    const page = await client.auditLogs.list({ ...range(), search: "POOLS/fields", limit: 1 });
    expect(page.getPaginatedItems()).toMatchObject([
      { auth_strategy: "none", user_id: "", email: "", status: 401 },
    ]);
    expect(page.hasNextPage()).toBe(true);
    const [entry] = (await page.getNextPage()).getPaginatedItems();
    expect(entry).toEqual({
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      auth_strategy: "api_key",
      user_id: "root",
      email: "root@remuda.invalid",
      status: 404,
      method: "DELETE",
      path: "/browser_pools/fields",
      route: "/browser_pools/{id_or_name}",
      domain: "127.0.0.1",
      duration_ms: expect.any(Number) as number,
      client_ip: "127.0.0.1",
      user_agent: "tester/1",
    });
    const changes = { ...range(), search: "fields", exclude_method: ["GET", "HEAD"] };
    const found = await client.auditLogs.list(changes);
    expect(found.getPaginatedItems().map(({ method }) => method)).toEqual(["DELETE"]);
    const wrong = async (query: object): Promise<unknown> =>
      await client.auditLogs.list({ ...range(), ...query }).then(
        () => "answered",
        (error: { status: number }) => error.status,
      );
    expect(await wrong({ start: "2020-01-01T00:00:00Z" })).toBe(400);
    expect(await wrong({ start: "yesterday" })).toBe(400);
    expect(await wrong({ page_token: "nonsense" })).toBe(400);
    expect(await wrong({ limit: 101 })).toBe(400);
    const metrics = async (): Promise<string> => (await next.call("GET /metrics")).text;
    await until("its count", async () => /remuda_audit_entries_total [1-9]/.test(await metrics()));
    await next.end("SIGTERM");
  },
  limitMs,
);
