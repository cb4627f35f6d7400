import { createHash } from "node:crypto";
import { limitedRequests, takeShortAnswers } from "../../archive/aws-answers.js";
import { atFirstUse } from "../../base/at-first-use.js";
import type { Clock, Millis } from "../../base/clock.js";
import type { Secret } from "../../base/crypto/secret.js";
import { abortWith, within } from "../../base/deadline.js";
import { assumeRoleFault, isRefused, putObjectFault } from "./aws-faults.js";
import type { Access, Buckets, OpenBucket } from "./buckets.js";
import type { Destination } from "./destination.js";

export interface AwsSettings {
  /** Whether destinations' roles are assumed; else the credentials put objects. */
  readonly assumesRoles: boolean;
  /** Where they are undefined, they are found as Amazon's own tools find them. */
  readonly credentials?: { readonly accessKeyId: Secret; readonly secretAccessKey: Secret } | undefined;
  /** Where they are undefined, Amazon's are used. */
  readonly s3Endpoint?: string | undefined;
  readonly stsEndpoint?: string | undefined;
  readonly isPathStyle: boolean;
  /** How long each request may take, its repeats included. */
  readonly limitMs: Millis;
  readonly clock: Clock;
}

/** The least that Amazon gives, and longer than one delivery takes. */
const sessionSeconds = 900;

interface Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

type S3 = typeof import("@aws-sdk/client-s3");
type Sts = typeof import("@aws-sdk/client-sts");
/** 24 MiB, and of no use to a deployment that exports to nobody. */
const awsSdk = atFirstUse((require) => ({
  s3: require("@aws-sdk/client-s3") as S3,
  sts: require("@aws-sdk/client-sts") as Sts,
}));

/** Buckets of Amazon S3, or of what speaks its protocol. */
export class AwsBuckets implements Buckets {
  constructor(private readonly settings: AwsSettings) {}

  async open(destination: Destination, access: Access): Promise<OpenBucket> {
    const { assumesRoles } = this.settings;
    const { s3, sts } = awsSdk();
    const keys = assumesRoles ? await this.#assumed(sts, destination, access) : this.#ownKeys;
    return new AwsBucket({ ...this.settings, s3, destination, keys, stopping: access.stopping });
  }

  async isOpenToAll(destination: Destination): Promise<boolean> {
    const { sts } = awsSdk();
    try {
      await this.#assume(sts, destination, undefined);
      return true;
    } catch (error) {
      if (isRefused(error)) return false;
      throw assumeRoleFault(error);
    }
  }

  async #assumed(sts: Sts, destination: Destination, access: Access): Promise<Keys> {
    try {
      return await this.#assume(sts, destination, access);
    } catch (error) {
      throw assumeRoleFault(error);
    }
  }

  /** The external id goes along where access is asked for. */
  async #assume(
    { STSClient, AssumeRoleCommand }: Sts,
    destination: Destination,
    access: Access | undefined,
  ): Promise<Keys> {
    const { stsEndpoint, limitMs } = this.settings;
    const credentials = this.#ownKeys;
    const client = new STSClient({
      region: destination.region,
      ...(stsEndpoint !== undefined && { endpoint: stsEndpoint }),
      ...(credentials && { credentials }),
      ...limitedRequests(limitMs),
    });
    takeShortAnswers(client);
    try {
      const command = new AssumeRoleCommand({
        RoleArn: destination.roleArn,
        // It stands in the log of whose role it is.
        RoleSessionName: `remuda-${destination.id}`,
        DurationSeconds: sessionSeconds,
        ...(access
          ? { ExternalId: destination.externalId, Policy: sessionPolicy(destination, access) }
          : { Policy: nothingAllowed }),
      });
      const limits = { ...this.settings, stopping: access?.stopping };
      const { Credentials } = await limited(limits, (abortSignal) => client.send(command, { abortSignal }));
      if (!Credentials?.AccessKeyId || !Credentials.SecretAccessKey) throw new Error("no credentials came");
      return {
        accessKeyId: Credentials.AccessKeyId,
        secretAccessKey: Credentials.SecretAccessKey,
        sessionToken: Credentials.SessionToken ?? "",
      };
    } finally {
      client.destroy();
    }
  }

  get #ownKeys(): Keys | undefined {
    const { credentials } = this.settings;
    return (
      credentials && {
        accessKeyId: credentials.accessKeyId.reveal(),
        secretAccessKey: credentials.secretAccessKey.reveal(),
      }
    );
  }
}

interface BucketParts extends AwsSettings {
  readonly s3: S3;
  readonly destination: Destination;
  readonly keys: Keys | undefined;
  readonly stopping: AbortSignal | undefined;
}

class AwsBucket implements OpenBucket {
  readonly #client: InstanceType<S3["S3Client"]>;

  constructor(private readonly parts: BucketParts) {
    const { s3, destination, keys: credentials, s3Endpoint, isPathStyle, limitMs } = parts;
    this.#client = new s3.S3Client({
      region: destination.region,
      forcePathStyle: isPathStyle,
      ...(s3Endpoint !== undefined && { endpoint: s3Endpoint }),
      ...(credentials && { credentials }),
      // The object's own sum goes along; not every S3-compatible store knows the newer ones.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      ...limitedRequests(limitMs),
    });
    takeShortAnswers(this.#client);
  }

  async put(key: string, bytes: Buffer): Promise<void> {
    const { s3, destination } = this.parts;
    const { bucket, kmsKeyId } = destination;
    const command = new s3.PutObjectCommand({
      Bucket: bucket,
      Key: key,
      Body: bytes,
      ContentType: "application/gzip",
      ChecksumSHA256: createHash("sha256").update(bytes).digest("base64"),
      ...(kmsKeyId !== undefined && { ServerSideEncryption: "aws:kms", SSEKMSKeyId: kmsKeyId }),
    });
    try {
      await limited(this.parts, (abortSignal) => this.#client.send(command, { abortSignal }));
    } catch (error) {
      throw putObjectFault(error);
    }
  }

  async remove(key: string): Promise<void> {
    const { s3, destination } = this.parts;
    const command = new s3.DeleteObjectCommand({ Bucket: destination.bucket, Key: key });
    await limited(this.parts, (abortSignal) => this.#client.send(command, { abortSignal }));
  }

  close(): void {
    this.#client.destroy();
  }
}

/** Ends a request with its limit, or when the daemon stops. */
async function limited<Value>(
  { clock, limitMs, stopping }: Pick<BucketParts, "clock" | "limitMs" | "stopping">,
  send: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const ending = new AbortController();
  const unfollow = abortWith(ending, stopping ? [stopping] : []);
  try {
    return await within(clock, { what: "a request to a destination", limitMs }, send(ending.signal));
  } finally {
    unfollow();
    ending.abort();
  }
}

const version = "2012-10-17";
/** A session that only shows whether it is given. */
const nothingAllowed = JSON.stringify({
  Version: version,
  Statement: [{ Effect: "Deny", Action: "*", Resource: "*" }],
});

/** A session may do what both its role and this allow: whatever the role's owner has let it do besides. */
function sessionPolicy(
  { region, bucket, kmsKeyId }: Destination,
  { start, mayRemove = false }: Access,
): string {
  const isKeyArn = /^arn:aws:kms:[^:]+:\d+:key\//.test(kmsKeyId ?? "");
  return JSON.stringify({
    Version: version,
    Statement: [
      {
        Effect: "Allow",
        Action: ["s3:PutObject", ...(mayRemove ? ["s3:DeleteObject"] : [])],
        Resource: `arn:aws:s3:::${bucket}/${start}*`,
      },
      {
        Effect: "Allow",
        Action: "kms:GenerateDataKey",
        // A policy can name no alias; a bucket may have a key of its own.
        Resource: isKeyArn ? kmsKeyId : "*",
        Condition: { StringEquals: { "kms:ViaService": `s3.${region}.amazonaws.com` } },
      },
    ],
  });
}
