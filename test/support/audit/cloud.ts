import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { until } from "../browser/chromium-until.js";
import { type Answer, startS3Server } from "../archive/s3-server.js";

/** A role of somebody else's, as its trust policy has it. */
interface Role {
  /** Undefined: whoever comes is let in. */
  readonly externalId?: string;
}
export interface Put {
  readonly key: string;
  /** The daemon that puts it, by the name in its credentials. */
  readonly by: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly bytes: Buffer;
}

const bucket = "archives";
const [serviceKey, sessionStart] = ["SERVICE", "session of "];

/** What the environment of a daemon says that it is in this cloud; daemons are told apart by `name`. */
export const serviceCredentials = (name = "") => ({
  AWS_ACCESS_KEY_ID: serviceKey + name,
  AWS_SECRET_ACCESS_KEY: "of the service",
});

const linesIn = (bytes: Buffer): string[] =>
  gunzipSync(bytes)
    .toString()
    .split("\n")
    .filter((line) => line !== "");
const answerOf = (name: string, more: string): string =>
  `<${name}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${name}Result>${more}</${name}Result></${name}Response>`;
/** The keys are those that s3rver knows. */
const grantedTo = (key: string): string =>
  answerOf(
    "AssumeRole",
    `<Credentials><AccessKeyId>S3RVER</AccessKeyId><SecretAccessKey>S3RVER</SecretAccessKey><SessionToken>${sessionStart}${key}</SessionToken><Expiration>2036-01-01T00:00:00Z</Expiration></Credentials>`,
  );
const refusedWith = (code: string): string =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>no, ${serviceKey}</Message></Error></ErrorResponse>`;

/**
 * An S3 server, and a token service that asks for external ids. Objects are checked as Amazon does and s3rver
 * does not: their sums, and that a session's token comes along.
 */
export async function startCloud({ needsSession = true }: { needsSession?: boolean } = {}) {
  const roles = new Map<string, Role>();
  const asked: URLSearchParams[] = [];
  const puts: Put[] = [];
  const faults: string[] = [];
  let around = async (_put: Pick<Put, "key" | "by">, put: () => Promise<void>): Promise<void> => put();
  let outage: number | undefined;
  const contentOf = (key: string) => readFile(join(s3.directory, bucket, `${key}._S3rver_object`));
  /** s3rver answers before it has written all of an object. */
  const wholeOf = (key: string, sum: string): Promise<Buffer | undefined> =>
    until(
      "an object written",
      async () => {
        const bytes = await contentOf(key).catch(() => Buffer.alloc(0));
        return createHash("sha256").update(bytes).digest("base64") === sum ? bytes : undefined;
      },
      10_000,
    ).catch(() => undefined);
  const watch: Answer = async (exchange, next) => {
    if (exchange.method !== "PUT") return await next();
    const { headers } = exchange;
    const key = decodeURIComponent(exchange.path.slice(1)).slice(bucket.length + 1);
    if (outage !== undefined) {
      exchange.status = outage;
      return;
    }
    const session = headers["x-amz-security-token"] ?? "";
    if (needsSession && !session.startsWith(sessionStart)) faults.push(`${key}: no session`);
    const by = session.slice(sessionStart.length + serviceKey.length);
    await around({ key, by }, async () => {
      await next();
      if (exchange.status !== 200) return;
      const bytes = await wholeOf(key, headers["x-amz-checksum-sha256"] ?? "");
      if (bytes === undefined) return void faults.push(`${key}: another sum`);
      puts.push({ key, by, headers, bytes });
    });
  };
  const s3 = await startS3Server([watch]);

  const sts = createServer((request, response) => {
    void (async () => {
      const form = new URLSearchParams(await text(request));
      asked.push(form);
      const [status, body] = judge(request, form);
      response.writeHead(status, { "content-type": "text/xml" }).end(body);
    })();
  });
  function judge(request: IncomingMessage, form: URLSearchParams): readonly [number, string] {
    const [, key] = /Credential=(\w+)\//.exec(request.headers.authorization ?? "") ?? [];
    if (!key?.startsWith(serviceKey)) return [403, refusedWith("InvalidClientTokenId")];
    const role = roles.get(form.get("RoleArn") ?? "");
    const isLetIn = role && (role.externalId === undefined || role.externalId === form.get("ExternalId"));
    return isLetIn ? [200, grantedTo(key)] : [403, refusedWith("AccessDenied")];
  }
  sts.listen(0, "127.0.0.1");
  await once(sts, "listening");

  const objects = async (): Promise<ReadonlyMap<string, Buffer>> => {
    const root = join(s3.directory, bucket);
    const names = await readdir(root, { recursive: true });
    const keys = names.filter((name) => name.endsWith("._S3rver_object"));
    const read = keys.map(async (name) => {
      const key = name.replace("._S3rver_object", "");
      return [key, await contentOf(key)] as const;
    });
    return new Map((await Promise.all(read)).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  };
  return {
    bucket,
    roles,
    /** What the token service was asked for. */
    asked,
    /** Objects that were put, each time. */
    puts,
    /** What Amazon would have refused. */
    faults,
    s3: s3.settings,
    s3Endpoint: s3.settings.endpoint ?? "",
    stsEndpoint: `http://127.0.0.1:${(sts.address() as AddressInfo).port}`,
    objects,
    /** The lines of all objects that were put, in the order of their names. */
    lines(): readonly { event_id: string; path: string; timestamp: string }[] {
      const latest = new Map(puts.map(({ key, bytes }) => [key, bytes]));
      return [...latest]
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .flatMap(([, bytes]) => linesIn(bytes).map((line) => JSON.parse(line)));
    },
    /** What happens around each object that is put. */
    aroundPuts: (work: typeof around) => void (around = work),
    /** The status that puts are answered with; undefined: they are taken. */
    break: (status: number | undefined) => void (outage = status),
    async close() {
      sts.closeAllConnections();
      sts.close();
      await s3.close();
    },
  };
}
export type Cloud = Awaited<ReturnType<typeof startCloud>>;
