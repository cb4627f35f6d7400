import { createHmac } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import { exportJWK, exportSPKI, generateKeyPair, type GenerateKeyPairResult, importJWK, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { KeySet } from "../../src/oidc/key-set.js";
import { makeTokenVerifier } from "../../src/oidc/verify-token.js";
import { DrivenClock } from "../support/driven-clock.js";
import { closeServer, listenLocally } from "../support/egress/local-server.js";
import { makeLogBook } from "../support/http/http-server.js";

const audience = "urn:remuda";
let pairs: readonly GenerateKeyPairResult[];
beforeAll(async () => {
  pairs = await Promise.all([1, 2].map(() => generateKeyPair("RS256", { extractable: true })));
});
const pair = (at = 0): GenerateKeyPairResult => pairs[at] as GenerateKeyPairResult;
const keysOf = async (...numbers: readonly number[]) => ({
  keys: await Promise.all(
    numbers.map(async (at) => ({
      ...(await exportJWK(pair(at).publicKey)),
      kid: `key-${at}`,
      alg: "RS256",
      use: "sig",
    })),
  ),
});

let server: Server;
let issuer: string;
let fetches: string[] = [];
let answer: RequestListener;
/** Answers as an issuer with these keys does. */
const publishing =
  (keys: () => Promise<unknown>): RequestListener =>
  async ({ url = "" }, response) => {
    const body = url.startsWith("/.well-known/") ? { issuer, jwks_uri: `${issuer}/keys` } : await keys();
    response.setHeader("content-type", "application/json").end(JSON.stringify(body));
  };
beforeAll(async () => {
  server = createServer((request, response) => {
    fetches.push(request.url ?? "");
    answer(request, response);
  });
  issuer = `http://${await listenLocally(server)}`;
});
afterAll(() => closeServer(server));
beforeEach(() => {
  fetches = [];
  answer = publishing(() => keysOf(0));
});

const start = Date.parse("2026-11-22T20:00:00Z") / 1000;
function open(jwksUrl: string | null = null, maxTokenAgeMs: number | null = 7_200_000) {
  const clock = new DrivenClock();
  clock.stand(start * 1000);
  const { log, lines } = makeLogBook();
  const keys = new KeySet({
    issuer,
    jwksUrl,
    keysRefreshMs: 600_000,
    keysKeepMs: 3_600_000,
    keysCooldownMs: 30_000,
    fetchLimitMs: 5000,
    clock,
    log,
  });
  const settings = { issuer, audience, algorithms: ["RS256"], clockToleranceMs: 30_000, maxTokenAgeMs };
  const verifier = makeTokenVerifier(settings, { findKey: keys.find, clock, log });
  const verdict = async (token: string): Promise<string> => {
    const got = await verifier.verify(token);
    return got.kind === "refused" ? got.code : "good";
  };
  const endOf = async (text: string): Promise<number> => {
    const got = await verifier.verify(text);
    if (got.kind === "refused") throw new Error(got.code);
    return got.value.until / 1000 - start;
  };
  return { clock, lines, verdict, endOf };
}

interface TokenOptions {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly at?: number;
}
const token = ({ claims = {}, header = {}, at = 0 }: TokenOptions = {}): Promise<string> =>
  new SignJWT({ iss: issuer, aud: audience, sub: "ada", iat: start, exp: start + 600, ...claims })
    .setProtectedHeader({ alg: "RS256", kid: `key-${at}`, ...header })
    .sign(pair(at).privateKey);
const inBase64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a token of the issuer for us is good, and its keys are fetched once for all who ask", async () => {
  const { verdict } = open();
  const good = await token();
  expect(await Promise.all([verdict(good), verdict(good)])).toEqual(["good", "good"]);
  expect(await verdict(await token({ header: { typ: "at+jwt" } }))).toBe("good");
  expect(await verdict(await token({ claims: { aud: ["another", audience] } }))).toBe("good");
  expect(fetches).toEqual(["/.well-known/openid-configuration", "/keys"]);
});

test("a token is good until its own end, or as long as one may be old where that comes first", async () => {
  const issued = (claims: object) => token({ claims: { iat: start - 60, ...claims } });
  const { endOf, verdict, clock } = open();
  expect(await endOf(await issued({ exp: start + 600 }))).toBe(630);
  const lasting = await issued({ exp: start + 86_400 });
  const ofAge = await endOf(lasting);
  expect(ofAge).toBe(7200 - 60 + 30);
  expect(await open(null, null).endOf(lasting)).toBe(86_430);
  expect(await open(null, null).endOf(await issued({ iat: undefined, exp: start + 600 }))).toBe(630);
  // It lets nobody in any more at the same instant.
  await clock.advance(ofAge * 1000);
  expect(await verdict(lasting)).toBe("good");
  await clock.advance(1000);
  expect(await verdict(lasting)).toBe("unauthorized");
});

test.each<[string, () => Promise<string>]>([
  ["for another audience", () => token({ claims: { aud: "urn:another" } })],
  ["for nobody", () => token({ claims: { aud: undefined } })],
  ["of another issuer", () => token({ claims: { iss: "https://another.example" } })],
  ["that has expired", () => token({ claims: { exp: start - 31 } })],
  ["that never expires", () => token({ claims: { exp: undefined } })],
  ["that is not valid yet", () => token({ claims: { nbf: start + 31 } })],
  ["that is too old", () => token({ claims: { iat: start - 7300 } })],
  ["of which nobody knows how old it is", () => token({ claims: { iat: undefined } })],
  ["of the future", () => token({ claims: { iat: start + 31 } })],
  ["for a logout", () => token({ header: { typ: "logout+jwt" } })],
  ["with an extension that has to be understood", () => token({ header: { crit: ["exp"] } }).catch(critical)],
  ["that names a key which is another's", () => token({ at: 1, header: { kid: "key-0" } })],
  ["whose signature was cut off", async () => (await token()).replace(/[^.]+$/, "AA")],
  ["that was changed", async () => changed(await token())],
  ["that is huge", () => token({ claims: { groups: "x".repeat(13_000) } })],
  ["without an algorithm", async () => unsigned()],
  ["signed with the public key as if it were a secret", () => confused()],
  ["that is no token", async () => "no.token.here"],
  ["of which the claims are no object", async () => `${inBase64({ alg: "RS256" })}.${inBase64([1])}.AA`],
])("a token %s is refused", async (_, make) => {
  const { verdict, lines } = open();
  const bad = await make();
  expect(await verdict(bad)).toBe("unauthorized");
  expect(JSON.stringify(lines)).not.toContain(bad.split(".")[2]);
  expect(lines.at(-1)).toMatchObject({ level: "debug", fields: { why: expect.any(String) } });
});

test.each<[string, TokenOptions]>([
  ['unexpected "aud" claim value', { claims: { aud: "urn:another" } }],
  ['its "iss" is not the configured issuer', { claims: { iss: "https://another.example" } }],
  ['"exp" claim timestamp check failed', { claims: { exp: start - 31 } }],
  ["its type lets nobody in", { header: { typ: "logout+jwt" } }],
])("the log says why a token was refused: %s", async (why, options) => {
  const { verdict, lines } = open();
  await verdict(await token(options));
  expect(lines).toMatchObject([{ level: "debug", fields: { why }, message: "token refused" }]);
});
const critical = (): string => {
  const header = inBase64({ alg: "RS256", kid: "key-0", crit: ["exp"], exp: 1 });
  return `${header}.${inBase64({ iss: issuer, aud: audience, sub: "ada", iat: start, exp: start + 600 })}.AA`;
};
const bodyOf = (text: string): string => text.split(".")[1] ?? "";
function changed(text: string): string {
  const claims = JSON.parse(Buffer.from(bodyOf(text), "base64url").toString()) as object;
  return text.replace(bodyOf(text), inBase64({ ...claims, sub: "somebody else" }));
}
async function unsigned(): Promise<string> {
  return `${inBase64({ alg: "none" })}.${bodyOf(await token())}.AA`;
}
async function confused(): Promise<string> {
  const head = `${inBase64({ alg: "HS256", kid: "key-0" })}.${bodyOf(await token())}`;
  const mac = createHmac("sha256", await exportSPKI(pair().publicKey)).update(head);
  return `${head}.${mac.digest("base64url")}`;
}

test("a token that names no key is tried with those of its kind that the issuer has, four at most", async () => {
  const { verdict, lines } = open();
  const [first, second] = await Promise.all([0, 1].map((at) => token({ at, header: { kid: undefined } })));
  answer = publishing(() => keysOf(0, 1));
  expect([await verdict(first ?? ""), await verdict(second ?? "")]).toEqual(["good", "good"]);
  const late = await token({ at: 1, header: { kid: undefined }, claims: { exp: start - 31 } });
  expect(await verdict(late)).toBe("unauthorized");
  expect(lines.at(-1)?.fields).toEqual({ why: '"exp" claim timestamp check failed' });
  expect(await verdict(changed(second ?? ""))).toBe("unauthorized");
  expect(fetches).toHaveLength(2);
  for (const [before, told] of [
    [[0, 0, 0], "good"],
    [[0, 0, 0, 0], "unauthorized"],
  ] as const) {
    answer = publishing(() => keysOf(...before, 1));
    expect(await open().verdict(second ?? "")).toBe(told);
  }
});

test("an algorithm that is not named is refused, also where a key of the issuer would do for it", async () => {
  const { keys } = await keysOf(0);
  answer = publishing(async () => ({ keys: keys.map((key) => ({ ...key, alg: undefined })) }));
  const { verdict } = open();
  const privateKey = await importJWK(await exportJWK(pair().privateKey), "PS256");
  const claims = { iss: issuer, aud: audience, sub: "ada", iat: start, exp: start + 600 };
  const other = new SignJWT(claims).setProtectedHeader({ alg: "PS256", kid: "key-0" });
  expect(await verdict(await other.sign(privateKey))).toBe("unauthorized");
  expect(await verdict(await token())).toBe("good");
});

test("a key that nobody knows is looked for once in the cooldown, and found once it is published", async () => {
  const { verdict, clock } = open();
  expect(await verdict(await token())).toBe("good");
  const renewed = await token({ at: 1 });
  for (let tries = 0; tries < 5; tries += 1) expect(await verdict(renewed)).toBe("unauthorized");
  expect(fetches).toHaveLength(2);
  answer = publishing(() => keysOf(0, 1));
  await clock.advance(30_000);
  expect(await verdict(renewed)).toBe("good");
  for (let tries = 0; tries < 5; tries += 1)
    expect(await verdict(await token({ header: { kid: `guess-${tries}` } }))).toBe("unauthorized");
  expect(fetches).toHaveLength(4);
  expect(await verdict(await token())).toBe("good");
});

test("tokens that cannot be good have no keys fetched", async () => {
  const { verdict } = open();
  for (const bad of [await token({ claims: { iss: "https://another.example" } }), await unsigned(), "a.b.c"])
    expect(await verdict(bad)).toBe("unauthorized");
  expect(fetches).toEqual([]);
});

test("while the issuer fails, its keys are used for an hour, and it is asked once in the cooldown", async () => {
  const { verdict, clock, lines } = open();
  const lasting = await token({ claims: { exp: start + 7000 } });
  expect(await verdict(lasting)).toBe("good");
  answer = (_, response) => void response.writeHead(500).end();
  fetches = [];
  await clock.advance(601_000);
  expect(await verdict(lasting)).toBe("good");
  await expect.poll(() => lines.some(({ message }) => message.includes("could not be fetched"))).toBe(true);
  expect(await verdict(lasting)).toBe("good");
  expect(fetches).toHaveLength(1);
  await clock.advance(3_600_000);
  expect(await verdict(lasting)).toBe("unavailable");
  expect(await verdict(lasting)).toBe("unavailable");
  expect(fetches).toHaveLength(2);
  answer = publishing(() => keysOf(0));
  await clock.advance(30_000);
  expect(await verdict(lasting)).toBe("good");
});

test.each<[string, RequestListener]>([
  ["huge keys", (_, response) => void response.end(`{"keys":[],"more":"${"x".repeat(300_000)}"}`)],
  ["a redirect", (_, response) => void response.writeHead(302, { location: "/elsewhere" }).end()],
  ["no JSON", (_, response) => void response.end("<html>")],
  ["no keys", (_, response) => void response.end('{"keys":"none"}')],
])("an issuer that answers %s has none", async (_, wrong) => {
  const { verdict } = open(`${issuer}/keys`);
  answer = wrong;
  expect(await verdict(await token())).toBe("unavailable");
  expect(fetches).toEqual(["/keys"]);
});

test.each([
  ["does not answer", false],
  ["answers and does not end", true],
])("an issuer that %s is given up after the limit", async (_, hasBegun) => {
  const { verdict, clock } = open(`${issuer}/keys`);
  const asked = new Promise<void>((resolve) => {
    answer = (_request, response) => {
      if (hasBegun) response.write('{"keys":');
      resolve();
    };
  });
  const waiting = verdict(await token());
  await asked;
  await clock.advance(5000);
  expect(await waiting).toBe("unavailable");
});

test.each([
  ["another issuer's", () => ({ issuer: "https://another.example", jwks_uri: `${issuer}/keys` })],
  ["without keys", () => ({ issuer })],
  ["with keys of no web server", () => ({ issuer, jwks_uri: "file:///etc/passwd" })],
])("a discovery document %s leads nowhere", async (_, made) => {
  const { verdict } = open();
  answer = (_request, response) => void response.end(JSON.stringify(made()));
  expect(await verdict(await token())).toBe("unavailable");
  expect(fetches).toEqual(["/.well-known/openid-configuration"]);
});
