import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cloud, serviceCredentials, startCloud } from "../../support/audit/cloud.js";
import { until } from "../../support/browser/chromium-until.js";
import { DaemonClient, startDaemon } from "../../support/daemon/daemon.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { blocksBetween, repository } from "../../support/documentation.js";

const run = promisify(execFile);
const textsBetween = (from: string, to: string): readonly string[] =>
  blocksBetween("docs/audit.md", from, to).map(({ text: printed }) => printed);
const [reading = ""] = textsBetween("## A worked example", "## Reading");
/** What the examples after the first go on from. */
const client = reading.slice(0, reading.indexOf("const end ="));

/** Where a reader saves the programs: with the packages of the repository, and nothing else. */
let place = "";
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "remuda-test-docs-"));
  symlinkSync(join(repository, "node_modules"), join(place, "node_modules"));
});
afterAll(() => rmSync(place, { recursive: true }));

function begin(
  program: string,
  daemon: DaemonClient,
): ChildProcess & { readonly stdout: NodeJS.ReadableStream } {
  const here = program.replace("http://127.0.0.1:4700", daemon.url);
  const env = { PATH: process.env["PATH"], REMUDA_API_KEY: daemon.apiKey };
  return spawn(process.execPath, ["--input-type=module", "--eval", here], {
    cwd: place,
    env,
    stdio: ["pipe", "pipe", "inherit"],
    timeout: 60_000,
  });
}
async function end(program: ReturnType<typeof begin>): Promise<string> {
  const [out, [code]] = await Promise.all([text(program.stdout as never), once(program, "exit")]);
  expect(code).toBe(0);
  return out;
}

/** Soon, so that a test waits for little. */
const soon = { hold_seconds: 1, window_seconds: 1, period_seconds: 1 };
const withSoon = (
  file: string,
  more: object,
): { audit: { export: Record<string, unknown> }; archives?: object } => {
  const { audit, ...rest } = JSON.parse(file);
  return { ...rest, audit: { ...audit, export: { ...audit.export, ...soon, ...more } } };
};
const delivered = (cloud: Cloud, path: string): Promise<true> =>
  until(`${path} delivered`, () => cloud.lines().some((line) => line.path === path) || undefined, 90_000);

test("the first example of docs/audit.md shows what was refused, and saves all of the log", async () => {
  const daemon = await startDaemon();
  const policy = { statements: [{ action: "profiles:read", resource: "projects/default/*" }] };
  const { body } = await daemon.call("POST /org/api_keys", { name: "reads", policy });
  const refused = await new DaemonClient(daemon.url, body.key).call("GET /browser_pools");
  expect(refused.status).toBe(403);
  const start = new Date(Date.now() - 3_600_000).toISOString();
  const soonest = new Date(Date.now() + 3_600_000).toISOString();
  await expect
    .poll(async () => (await daemon.call(`GET /audit-logs?start=${start}&end=${soonest}&search=403`)).body)
    .toHaveLength(1);
  const out = await end(begin(reading, daemon));
  expect(out).toMatch(/^\S+Z root@remuda\.invalid GET \/browser_pools 403$/m);
  const [, rows = ""] = /^(\d+) entries; read them/m.exec(out) ?? [];
  const saved = gunzipSync(readFileSync(join(place, "audit.jsonl.gz")))
    .toString()
    .trimEnd();
  expect(saved.split("\n")).toHaveLength(Number(rows));
  expect(saved).toContain('"path":"/org/api_keys"');
  await daemon.stop();
});

test("the destination of docs/audit.md is delivered to, once its role is as the policies printed there say", async () => {
  const texts = textsBetween("### A worked example", "### Delivery");
  const cloud = await startCloud();
  const here = (printed = ""): string => printed.replaceAll("acme-logs", cloud.bucket);
  const [file, create, trust, role, ofBucket, activate] = texts.map(here);
  const { audit, ...rest } = withSoon(file ?? "", {
    s3_endpoint: cloud.s3Endpoint,
    sts_endpoint: cloud.stsEndpoint,
  });
  const environment = serviceCredentials();
  const own = new DaemonPlace({ environment, file: { ...rest, audit } });
  // Amazon's own client finds its credentials in the environment of a process.
  const daemon = await spawnDaemon(own);

  // Its reader makes the role with the external id that is printed, and goes on then.
  const goingOn = 'await new Promise((go) => process.stdin.once("data", go));\n';
  const leave = "process.stdin.destroy();\n";
  const program = begin([client, create, goingOn, activate, leave].join(""), daemon);
  const [printed] = (await once(program.stdout, "data")) as [Buffer];
  const statementsOf = (policy = "{}") => JSON.parse(policy).Statement;
  const [trusted] = statementsOf(trust?.replace("the destination's external_id", String(printed).trim()));
  const [, roleArn = ""] = /role_arn: "(.*)"/.exec(create ?? "") ?? [];
  expect(trusted.Principal.AWS).toBe(audit.export["service_role_arn"]);
  expect(statementsOf(ofBucket)[0].Principal.AWS).toBe(roleArn);
  cloud.roles.set(roleArn, { externalId: trusted.Condition.StringEquals["sts:ExternalId"] });
  program.stdin?.write("\n");
  expect(await end(program)).toBe("{ success: true, stage: 'complete' }\n");

  await daemon.call("GET /browser_pools/told-to-others");
  await delivered(cloud, "/browser_pools/told-to-others");
  expect(cloud.faults).toEqual([]);
  const start = ({ Resource }: { Resource: string }) =>
    Resource.slice(`arn:aws:s3:::${cloud.bucket}/`.length, -1);
  const [puts, removes] = statementsOf(role).map(start) as [string, string];
  for (const { key } of cloud.puts) expect(key.startsWith(puts)).toBe(true);
  expect(cloud.puts[0]?.key.startsWith(removes)).toBe(true);
  expect(statementsOf(ofBucket).map(start)).toEqual([puts]);
  await daemon.end("SIGTERM");
  own.remove();
  await cloud.close();
});

test("a store of one's own is delivered to by the configuration and the programs of docs/audit.md", async () => {
  const [file = "", make = "", read = ""] = textsBetween("### A store of one's own", "## Whether it was");
  const cloud = await startCloud({ needsSession: false });
  const { audit, ...rest } = withSoon(file, {});
  expect(audit.export).toMatchObject({ assume_role: false, s3_endpoint: "https://s3.example.com" });
  const daemon = await startDaemon({
    environment: { REMUDA_S3_ACCESS_KEY_ID: "S3RVER", REMUDA_S3_SECRET_ACCESS_KEY: "S3RVER" },
    file: { ...rest, audit: { ...audit, export: { ...audit.export, s3_endpoint: cloud.s3Endpoint } } },
  });
  const program = client + make.replace('bucket: "audit"', `bucket: "${cloud.bucket}"`);
  expect(await end(begin(program, daemon))).toBe("{ success: true, stage: 'complete' }\n");
  await daemon.call("GET /browser_pools/kept-by-oneself");
  await delivered(cloud, "/browser_pools/kept-by-oneself");
  expect(cloud.faults).toEqual([]);
  expect(cloud.asked).toEqual([]);

  // What Amazon's tool would fetch.
  const [sync, ...show] = read.split("\n");
  expect(sync).toMatch(
    /^aws s3 sync --endpoint-url https:\/\/s3\.example\.com s3:\/\/audit\/remuda\/ audit\/$/,
  );
  await mkdir(join(place, "audit"));
  for (const { key, bytes } of cloud.puts) await writeFile(join(place, "audit", basename(key)), bytes);
  const { stdout } = await run("sh", ["-c", show.join("\n")], { cwd: place });
  expect(stdout).toContain('"path":"/browser_pools/kept-by-oneself"');
  await daemon.stop();
  await cloud.close();
});
