import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { chromium as playwright } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import type { Got } from "../../support/http/http-server.js";
import { OtlpReceiver } from "../../support/telemetry/otlp-receiver.js";
import { openRelyingParty } from "../../support/vault/relying-party.js";
import { encrypted, formHeader } from "../../support/vault/vault-bed.js";

const password = "pass-of-nobody-Zk4q8xWv2T";
const entered = "entered-by-a-person-9dLw3R";
const seed = "MFZXK4TJORSXEZLSMVQXG33OMVZWC3DF";
const path = "/vaults/logins/items/shop";

/** All bytes below a directory. */
const bytesBelow = (directory: string): Buffer =>
  Buffer.concat(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name))),
  );

interface Process {
  readonly pid: number;
  readonly parent: number;
}
function processes(): readonly Process[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const [, parent] = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8")) ?? [];
      return parent === undefined || !/^\d+$/.test(name)
        ? []
        : [{ pid: Number(name), parent: Number(parent) }];
    } catch {
      return [];
    }
  });
}

/** Command lines and environments of all that the daemon has started, and how many these are. */
function toldToProcesses(daemon: number): { readonly count: number; readonly bytes: Buffer } {
  const all = processes();
  const below = (pid: number): number[] =>
    all.filter(({ parent }) => parent === pid).flatMap((child) => [child.pid, ...below(child.pid)]);
  const started = below(daemon);
  const read = (file: string): Buffer => {
    try {
      return readFileSync(file);
    } catch {
      // It has ended meanwhile.
      return Buffer.alloc(0);
    }
  };
  const files = started.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
  return { count: started.length, bytes: Buffer.concat(files.map(read)) };
}

/** As it could stand somewhere: the ends of an encoded text depend on what is beside the secret. */
function formsOf(secret: string | Buffer): readonly Buffer[] {
  const bytes = Buffer.from(secret);
  const encoded = (["base64", "base64url", "hex"] as const).flatMap((encoding) =>
    [0, 1, 2].map((shift) => {
      const text = Buffer.concat([Buffer.alloc(shift), bytes])
        .toString(encoding)
        .replaceAll("=", "");
      return Buffer.from(text.slice(encoding === "hex" ? 2 * shift : 4, -4));
    }),
  );
  return [bytes, Buffer.from(bytes.toString("latin1"), "utf16le"), ...encoded];
}

/** What the private Redis of a daemon holds is written to its files, uncompressed. */
async function writeRedis(place: DaemonPlace): Promise<void> {
  const redis = new Redis(join(place.dataDir, "redis", "redis.sock"));
  await redis.config("SET", "rdbcompression", "no");
  await redis.save();
  redis.disconnect();
}

async function submitForm(daemon: DaemonProcess, token: string): Promise<void> {
  const [, port] = /"port":(\d+)[^\n]*"msg":"collection form listening"/.exec(daemon.log) ?? [];
  const ask = async (question: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const sent = { method: "POST", headers, body: JSON.stringify({ token, ...body }) };
    return (await (await fetch(`http://127.0.0.1:${port}/${question}`, sent)).json()) as Record<
      string,
      unknown
    >;
  };
  const form = await ask("open", {});
  const value = await encrypted(form["encryption_key"] as never, entered, formHeader(token, "pin"));
  expect(await ask("submit", { version: form["version"], values: { pin: value } })).toEqual({
    state: "done",
  });
}

interface Bed {
  readonly place: DaemonPlace;
  readonly daemon: DaemonProcess;
  readonly receiver: OtlpReceiver;
  readonly site: FillSite;
  /** All that was answered, but for what has a link to a form. */
  readonly answers: string[];
  call(operation: string, body?: unknown): Promise<Got>;
}

async function open(): Promise<Bed> {
  const [receiver, site] = await Promise.all([new OtlpReceiver().start(), openFillSite()]);
  onTestFinished(async () => void (await Promise.all([receiver.close(), site.close()])));
  const inputs = ["user", "code", "pin"].map((id) => `<input id="${id}">`);
  site.serve({ body: `${inputs.join("")}<input id="password" type="password">` });
  const place = new DaemonPlace({
    file: {
      vault: { form: { public_url: "https://form.example" } },
      telemetry: { export: { private_hosts: ["127.0.0.1"], delay_ms: 20 } },
    },
  });
  const daemon = await spawnDaemon(place);
  const answers: string[] = [];
  const call = async (operation: string, body?: unknown): Promise<Got> => {
    const got = await daemon.call(operation, body);
    expect(got.status, got.text).toBeLessThan(300);
    answers.push(got.text);
    return got;
  };
  return { place, daemon, receiver, site, answers, call };
}

/** Makes an item of every kind of field, and has a person enter what is missing; the token of the link. */
async function collect({ daemon, call }: Bed, passkey: object): Promise<string> {
  await call("POST /vaults", { name: "logins" });
  const fields = [
    { name: "password", type: "password", value: password },
    { name: "code", type: "totp", value: seed },
    { name: "site", type: "passkey", value: JSON.stringify(passkey) },
    { name: "pin", type: "password" },
  ];
  const made = await daemon.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } });
  const token = String(made.body.action.url).split("#token=")[1] ?? "";
  await submitForm(daemon, token);
  return token;
}

/** Fills and arms a browser of which everything is told; what its processes were told. */
async function use({ daemon, receiver, site, call }: Bed): Promise<Buffer> {
  await call("POST /telemetry/destinations", { name: "collector", endpoint: receiver.url });
  const on = { enabled: true };
  const { body: session } = await call("POST /browsers", {
    headless: true,
    vaults: [{ name: "logins" }],
    telemetry: {
      ...on,
      browser: { console: on, network: on, page: on, interaction: on },
      export: { otlp: { destination: { name: "collector" } } },
    },
  });
  const connected = await playwright.connectOverCDP(String(session.cdp_ws_url));
  const page = connected.contexts()[0]?.pages()[0];
  await page?.goto(`${site.other}/`);
  const about = { browser_id: session.session_id };
  await call(`POST ${path}/operations`, { ...about, type: "arm_passkey" });
  const fields = ["password", "code", "pin"].map((name) => ({ field: name, selector: `#${name}` }));
  const fill = { ...about, type: "fill", fields, timeout_ms: 30_000 };
  expect((await call(`POST ${path}/operations`, fill)).body).toMatchObject({ status: "completed" });
  expect(await page?.inputValue("#pin")).toBe(entered);
  const told = toldToProcesses(daemon.pid);
  expect(told.count).toBeGreaterThan(3);
  await call(`GET /browsers/${session.session_id}/flight_recording`);
  await connected.close();
  await until("the export", () => receiver.records.some(({ type }) => type === "cdp_disconnect"));
  await call(`GET /browsers/${session.session_id}/telemetry/events`);
  await daemon.call(`DELETE /browsers/${session.session_id}`);
  return told.bytes;
}

/** Each place has something that is no secret: so it is the right place, and is read as it is written. */
const knownIn = [
  ["files", "vaultValues"],
  ["files", "REDIS0"],
  ["files", "cdp_connect"],
  ["files", "/vaults/logins/items/shop/operations"],
  ["log", "collection form listening"],
  ["exports", "cdp_connect"],
  ["processes", "--remote-debugging-pipe"],
  ["answers", "credential.filled"],
] as const;

/** The bytes of all places, once what Redis holds is in its files. */
async function readAll({ place, daemon, receiver, answers }: Bed, toldProcesses: Buffer) {
  await writeRedis(place);
  return {
    files: bytesBelow(place.dataDir),
    log: Buffer.from(daemon.log),
    exports: Buffer.concat(receiver.requests.map(({ bytes }) => bytes)),
    processes: toldProcesses,
    answers: Buffer.from(answers.join("\n")),
  };
}

test("no secret of a vault stands in Redis, its files, the log, the audit log, telemetry, exports, recordings, answers or processes", async () => {
  const bed = await open();
  const { daemon, call } = bed;
  const { passkey } = openRelyingParty(bed.site.other);
  const key = Buffer.from(passkey["key"] ?? "", "base64url");
  const token = await collect(bed, passkey);
  const toldProcesses = await use(bed);
  await call(`GET ${path}/events`);
  const [start, end] = [-60_000, 60_000].map((by) => new Date(Date.now() + by).toISOString());
  await call(`GET /audit-logs?start=${start}&end=${end}`);

  const searched = await readAll(bed, toldProcesses);
  for (const [where, known] of knownIn)
    expect(searched[where].includes(known), `${known} in ${where}`).toBe(true);
  const secrets = { password, entered, seed, passkey: key, scalar: key.subarray(36, 68), token };
  const found = Object.entries(searched).flatMap(([where, bytes]) =>
    Object.entries(secrets)
      .filter(([, secret]) => formsOf(secret).some((form) => bytes.includes(form)))
      .map(([name]) => `${name} in ${where}`),
  );
  expect(found).toEqual([]);
  await daemon.stop();
}, 120_000);
