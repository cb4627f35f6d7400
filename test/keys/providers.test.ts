import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Secret } from "../../src/base/crypto/secret.js";
import { makeKmsProvider } from "../../src/keys/aws-kms.js";
import { makeTransitProvider } from "../../src/keys/transit.js";
import { makeKeyRing, makeLocalProvider } from "../../src/vault/encryption/key-provider.js";
import { seal } from "../support/vault/vault-bed.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Keeps a key and uses it, as both services do. */
class Keeper {
  readonly #key = randomBytes(32);
  encrypt(plain: string, context: string): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce).setAAD(Buffer.from(context));
    const parts = [nonce, cipher.update(plain, "base64"), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(parts).toString("base64");
  }
  /** Throws where it is not what was encrypted. */
  decrypt(text: string, context: string): string {
    const bytes = Buffer.from(text, "base64");
    const cipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(0, 12));
    cipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-16));
    return Buffer.concat([cipher.update(bytes.subarray(12, -16)), cipher.final()]).toString("base64");
  }
}

interface Asked {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, string & Record<string, string>>;
}
type Reply = readonly [status: number, body: object];

function* forever(text: string): Generator<string> {
  yield '{"data": [';
  for (;;) yield text;
}

/** Speaks the wire of one of the two. */
class Double {
  readonly asked: Asked[] = [];
  readonly keeper = new Keeper();
  failing: Reply | undefined;
  /** Begins with an answer, and says no more. */
  isSilent = false;
  /** Answers with a text that has no end, and goes on until nobody reads it. */
  isEndless = false;
  readonly #server: Server;
  #tellTaken: (bytes: number) => void = () => {};
  /** How many bytes of an endless answer were taken. */
  readonly taken = new Promise<number>((resolve) => (this.#tellTaken = resolve));

  constructor(reply: (keeper: Keeper, asked: Asked) => Reply) {
    this.#server = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += String(chunk);
      const asked = {
        url: request.url ?? "",
        headers: request.headers,
        body: JSON.parse(text) as Asked["body"],
      };
      this.asked.push(asked);
      if (this.isSilent) return void response.writeHead(200).write("{");
      if (this.isEndless) {
        const { socket } = request;
        const rest = Readable.from(forever(`"${"a".repeat(2 ** 16)}",`));
        response.once("close", () => {
          rest.destroy();
          this.#tellTaken(socket.bytesWritten);
        });
        return void rest.pipe(response.writeHead(200));
      }
      const [status, body] = this.failing ?? reply(this.keeper, asked);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  }
  async start(): Promise<void> {
    await new Promise<void>((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const transit = new Double((keeper, { url, headers, body }) => {
  if (headers["x-vault-token"] !== "s.token") return [403, { errors: ["permission denied"] }];
  const context = body["associated_data"] ?? "";
  if (url === "/v1/transit/encrypt/remuda")
    return [200, { data: { ciphertext: `vault:v1:${keeper.encrypt(body["plaintext"] ?? "", context)}` } }];
  if (url !== "/v1/transit/decrypt/remuda") return [404, { errors: [] }];
  try {
    const text = (body["ciphertext"] ?? "").replace("vault:v1:", "");
    return [200, { data: { plaintext: keeper.decrypt(text, context) } }];
  } catch {
    return [400, { errors: ["cipher: message authentication failed"] }];
  }
});

const kms = new Double((keeper, { headers, body }) => {
  const context = JSON.stringify(body["EncryptionContext"]);
  if (headers["x-amz-target"] === "TrentService.Encrypt")
    return [200, { KeyId: body["KeyId"], CiphertextBlob: keeper.encrypt(body["Plaintext"] ?? "", context) }];
  try {
    return [200, { Plaintext: keeper.decrypt(body["CiphertextBlob"] ?? "", context) }];
  } catch {
    return [400, { __type: "com.amazonaws.kms#InvalidCiphertextException" }];
  }
});

beforeAll(() => Promise.all([transit.start(), kms.start()]));
afterAll(() => {
  transit.stop();
  kms.stop();
});
beforeEach(() => {
  for (const double of [transit, kms]) {
    double.failing = undefined;
    double.isEndless = false;
    double.isSilent = false;
    double.asked.length = 0;
  }
});

const longMs = 20_000;
const credentials = async () => ({ accessKeyId: "AKID", secretAccessKey: "secret", sessionToken: "session" });
const at = Date.parse("2026-01-02T03:04:05.678Z");
const providers = {
  transit: (key = "remuda", limitMs = longMs) =>
    makeTransitProvider({
      address: transit.url,
      token: new Secret("s.token"),
      mount: "transit",
      key,
      limitMs,
    }),
  kms: (key = "alias/remuda", limitMs = longMs) =>
    makeKmsProvider({ endpoint: kms.url, region: "eu-west-1", key, credentials, now: () => at, limitMs }),
} as const;
const doubles = { transit, kms };

describe.each(["transit", "kms"] as const)("%s", (name) => {
  test("a key is unwrapped for its context, and for no other", async () => {
    const provider = providers[name]();
    const bytes = randomBytes(32);
    const wrapped = await provider.wrap(bytes, "vault key a");
    expect(provider.isOwn(wrapped)).toBe(true);
    expect(wrapped).not.toContain(bytes.toString("base64"));
    expect(await provider.unwrap(wrapped, "vault key a")).toEqual({ kind: "unwrapped", bytes });
    expect(await provider.unwrap(wrapped, "vault key b")).toEqual({ kind: "damaged" });
    expect(await provider.unwrap(`${wrapped.slice(0, -8)}AAAAAAA=`, "vault key a")).toEqual({
      kind: "damaged",
    });
  });

  test("another key is told from damage", async () => {
    const wrapped = await providers[name]("other")
      .wrap(randomBytes(32), "c")
      .catch(() => `${name}.b3RoZXI.x`);
    expect(await providers[name]().unwrap(wrapped, "c")).toEqual({ kind: "wrong-key" });
  });

  test.each([500, 403, 429])("an answer of %s is no verdict on the key", async (status) => {
    const provider = providers[name]();
    const wrapped = await provider.wrap(randomBytes(32), "c");
    doubles[name].failing = [status, { __type: "ThrottlingException", errors: [] }];
    expect(await provider.unwrap(wrapped, "c")).toEqual({ kind: "unavailable" });
    await expect(provider.wrap(randomBytes(32), "c")).rejects.toMatchObject({ code: "unavailable" });
  });

  test("what stands before the keeper of keys gives no verdict on a key by its own 400", async () => {
    const provider = providers[name]();
    const wrapped = await provider.wrap(randomBytes(32), "c");
    doubles[name].failing = [400, { message: "The plain HTTP request was sent to HTTPS port" }];
    expect(await provider.unwrap(wrapped, "c")).toEqual({ kind: "unavailable" });
  });

  test("an answer that stops is waited for no longer than the limit, also when memory was collected", async () => {
    doubles[name].isSilent = true;
    const wrapping = providers[name]("remuda", 1000).wrap(randomBytes(32), "c");
    const collecting = setInterval(collect, 100);
    await expect(wrapping).rejects.toMatchObject({ code: "unavailable" });
    clearInterval(collecting);
  });

  test("an answer without an end is not read on", async () => {
    doubles[name].isEndless = true;
    await expect(providers[name]().wrap(randomBytes(32), "c")).rejects.toMatchObject({ code: "unavailable" });
    // Linux has taken some MiB of it that nobody has read.
    expect(await doubles[name].taken).toBeLessThan(2 ** 25);
  });
});

test("a request to KMS is signed as Signature Version 4 has it", async () => {
  await providers.kms().wrap(Buffer.alloc(32), "c");
  const [{ headers, body } = { headers: {} as Asked["headers"], body: {} }] = kms.asked;
  const signedNames = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target";
  expect(headers).toMatchObject({ "x-amz-date": "20260102T030405Z", "x-amz-security-token": "session" });
  const found = /^AWS4-HMAC-SHA256 Credential=(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? "",
  );
  expect(found?.slice(1, 3)).toEqual(["AKID/20260102/eu-west-1/kms/aws4_request", signedNames]);
  // Computed once more, from what has arrived.
  const { createHash } = await import("node:crypto");
  const sha = (text: string): string => createHash("sha256").update(text).digest("hex");
  const lines = signedNames.split(";").map((name) => `${name}:${String(headers[name])}`);
  const canonical = ["POST", "/", "", ...lines, "", signedNames, sha(JSON.stringify(body))].join("\n");
  const scope = "20260102/eu-west-1/kms/aws4_request";
  const sign = (key: string | Buffer, text: string): Buffer =>
    createHmac("sha256", key).update(text).digest();
  const key = scope.split("/").reduce<string | Buffer>(sign, "AWS4secret");
  const text = ["AWS4-HMAC-SHA256", "20260102T030405Z", scope, sha(canonical)].join("\n");
  expect(found?.[3]).toBe(sign(key, text).toString("hex"));
});

test("a ring unwraps by whichever has wrapped, and wraps by the first", async () => {
  const local = makeLocalProvider(seal);
  const bytes = randomBytes(32);
  const old = await local.wrap(bytes, "c");
  const ring = makeKeyRing(providers.transit(), [local]);
  expect(await ring.unwrap(old, "c")).toEqual({ kind: "unwrapped", bytes });
  expect(await ring.wrap(bytes, "c")).toMatch(/^transit\./);
  expect(await makeKeyRing(providers.transit(), []).unwrap(old, "c")).toEqual({ kind: "wrong-key" });
});
