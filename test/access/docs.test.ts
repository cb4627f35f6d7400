import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { OidcIssuer } from "../support/access/oidc-issuer.js";
import { type Daemon, DaemonClient, startDaemon } from "../support/daemon/daemon.js";
import { blocksBetween, repository } from "../support/documentation.js";

const run = promisify(execFile);
const textsBetween = (from: string, to: string): readonly string[] =>
  blocksBetween("docs/access.md", from, to).map(({ text }) => text);

/** Types these lines one after the other, at a daemon whose root key is at hand. */
async function typed(daemon: Daemon, ...lines: readonly string[]): Promise<string> {
  const env = { PATH: process.env["PATH"], REMUDA: daemon.url, ROOT: daemon.apiKey };
  const { stdout } = await run("sh", ["-c", lines.join("\n")], { cwd: repository, env, timeout: 60_000 });
  return stdout;
}
/** A block whose first line says where a daemon of `npm start` and its key are, without that line. */
function withoutPlace(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  expect(first).toMatch(/^REMUDA=http:\/\/127\.0\.0\.1:4700; /);
  return rest.join("\n");
}
const fieldsOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fieldsOf(inner)]))
    : typeof value;

test("the keys of docs/access.md are made by the commands printed there, and are what it says", async () => {
  const [create = "", made = "{}"] = textsBetween("## API keys", "### The text of a key");
  const [policy = ""] = textsBetween("## Policies", "A `resource` is");
  const daemon = await startDaemon();
  const [first, again] = [
    await typed(daemon, withoutPlace(create)),
    await typed(daemon, withoutPlace(create)),
  ].map((text) => JSON.parse(text));
  // The same idempotency key, the same answer.
  expect(again).toEqual(first);
  const printed = JSON.parse(made);
  expect(fieldsOf(first)).toEqual(fieldsOf(printed));
  expect(first).toMatchObject({ name: printed.name, created_by: printed.created_by, project_id: null });
  const lifeOf = ({ created_at: from, expires_at: to }: typeof printed) => Date.parse(to) - Date.parse(from);
  expect(lifeOf(first)).toBe(lifeOf(printed));

  const { key } = JSON.parse(await typed(daemon, policy));
  const agent = async (operation: string, body?: object): Promise<number> =>
    (await new DaemonClient(daemon.url, key).call(operation, body)).status;
  expect(await agent("GET /browsers")).toBe(200);
  expect(await agent("GET /profiles/login")).toBe(403);
  expect(await agent("POST /browsers", { profile: { name: "another" } })).toBe(403);
  expect(await agent("POST /browser_pools/herd/acquire", {})).toBe(403);
  await daemon.stop();
});

interface OidcSettings {
  readonly issuer: string;
  readonly audience: string;
  readonly admins: readonly string[];
  readonly members: readonly string[];
  readonly readers: readonly string[];
}

test("the realm of docs/access.md lets its people in by the configuration and the commands printed there", async () => {
  const [setUp = "", file = "", ask = "", come = "", context = ""] = textsBetween(
    "## People",
    "### What people may do",
  );
  const issuer = await OidcIssuer.start("realm-provider");
  const [, where = ""] = /^(https:\/\/[^/]+)/.exec(JSON.parse(file).access.oidc.issuer) ?? [];
  const here = (text: string): string => text.replaceAll(where, new URL(issuer.url).origin);
  const daemon = await startDaemon({ file: JSON.parse(here(file)) });
  const letIn = `curl -s "${new URL("/let-in", issuer.url).href}?user_code=$(echo "$CODE" | field user_code)"`;
  const out = await typed(daemon, here(ask).replace(/^REMUDA=\S+ /, ""), letIn, here(come));
  const [address = "", isIn, ...answer] = out.split("\n");
  expect([address.startsWith(new URL(issuer.url).origin), isIn]).toEqual([true, "in"]);
  expect(JSON.parse(answer.join("\n"))).toEqual(JSON.parse(context));

  // Nobody has Keycloak here: what its command line is told is held against the rest.
  const oidc: OidcSettings = JSON.parse(file).access.oidc;
  const [, client = "{}"] = /<< 'END'\n(.*)\nEND\n/s.exec(setUp) ?? [];
  const [mapper] = JSON.parse(client).protocolMappers;
  expect(mapper.config["included.custom.audience"]).toBe(oidc.audience);
  expect(`${ask}${come}`.match(/client_id=[\w-]+/g)).toEqual(
    Array.from({ length: 2 }, () => `client_id=${JSON.parse(client).clientId}`),
  );
  const [, roles = ""] = /for role in (.*?); do/.exec(setUp) ?? [];
  expect(roles.split(" ")).toEqual([...oidc.admins, ...oidc.members, ...oidc.readers]);
  expect(oidc.issuer).toBe(`${where}/realms/${/realm=(\w+)/.exec(setUp)?.[1] ?? ""}`);
  await daemon.stop();
  await issuer.stop();
});
