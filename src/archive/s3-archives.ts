import {
  type _Object,
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  type MultipartUpload,
  paginateListObjectsV2,
  S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline as piped, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Millis } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import { findDigest, type Digest } from "../base/ids.js";
import type { Secret } from "../base/crypto/secret.js";
import type { ArchiveEntry } from "./archives.js";
import { limitedRequests, takeShortAnswers } from "./aws-answers.js";
import { writeNewFile } from "./archive-files.js";
import type { ArchiveBackend } from "./kept-archives.js";
import { verifyDigest, WrongDigest } from "./verified.js";

export interface S3Settings {
  readonly bucket: string;
  /** Stands before every archive's name. */
  readonly prefix: string;
  readonly region: string;
  /** Where it is undefined, Amazon's endpoint is used. */
  readonly endpoint?: string;
  readonly isPathStyle: boolean;
  /** Where they are undefined, they are found as Amazon's own tools find them. */
  readonly credentials?: { readonly accessKeyId: Secret; readonly secretAccessKey: Secret };
  /** A request is given up when it is not answered within, a transfer when nothing moves for so long. */
  readonly limitMs: Millis;
}

/** S3 takes parts from 5 MiB on, and at most 10,000 of them. */
const leastPartBytes = 8 * 2 ** 20;
const mostParts = 9000;
/** Each upload holds at most so many parts in memory. */
const partsAtOnce = 2;

/** A page of a list has 1000 names, each of up to 1024 bytes that may have to be escaped. */
const listBytes = 16 * 2 ** 20;
const answerBytes = (command: string): number => (command === "GetObjectCommand" ? Infinity : listBytes);

const makeClient = (settings: S3Settings): S3Client => {
  const client = clientOf(settings);
  takeShortAnswers(client, answerBytes);
  // The SDK loads who finds credentials when they are asked for: now, at the daemon's start, since a load
  // that fails later may fail for ever (DECISIONS.md#185). What comes of it is the first request's to tell.
  if (!settings.credentials) client.config.credentials().catch(() => {});
  return client;
};

const clientOf = ({ region, endpoint, isPathStyle, credentials, limitMs }: S3Settings): S3Client =>
  new S3Client({
    region,
    forcePathStyle: isPathStyle,
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials && {
      credentials: {
        accessKeyId: credentials.accessKeyId.reveal(),
        secretAccessKey: credentials.secretAccessKey.reveal(),
      },
    }),
    // We check the digest ourselves, and not every S3-compatible store knows the newer checksums.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    ...limitedRequests(limitMs),
  });

/**
 * Archives as objects `<prefix><digest>`. An object is there once it is whole, and its time tells when it was
 * put last.
 */
export class S3Archives implements ArchiveBackend {
  readonly #client: S3Client;

  constructor(private readonly settings: S3Settings) {
    this.#client = makeClient(settings);
  }

  close(): void {
    this.#client.destroy();
  }

  /** An archive that is kept already is put again, which makes its time that of now. */
  async put(digest: Digest, path: string): Promise<void> {
    const { size } = await stat(path);
    const body = piped(createReadStream(path), verifyDigest(digest), () => {});
    try {
      await new Upload({
        client: this.#client,
        params: { ...this.#at(digest), Body: body, ContentType: "application/octet-stream" },
        partSize: Math.max(leastPartBytes, Math.ceil(size / mostParts)),
        queueSize: partsAtOnce,
      }).done();
    } catch (error) {
      throw error instanceof WrongDigest ? error : s3Fault(error);
    } finally {
      body.destroy();
    }
  }

  async open(digest: Digest): Promise<Readable> {
    const { Body } = await this.#ask(this.#client.send(new GetObjectCommand(this.#at(digest))));
    if (!(Body instanceof Readable)) throw new RemudaError("archive_missing");
    return piped(Body, verifyDigest(digest), () => {});
  }

  async remove(digest: Digest): Promise<void> {
    await this.#ask(this.#client.send(new DeleteObjectCommand(this.#at(digest))));
  }

  /** S3 has no removal by time; between the look and the removal lies one round trip. */
  async removeStale(digest: Digest, putAt: Millis): Promise<"removed" | "fresh"> {
    const found = await this.#head(digest);
    if (found && secondOf(found.LastModified?.getTime() ?? putAt) !== secondOf(putAt)) return "fresh";
    if (found) await this.remove(digest);
    return "removed";
  }

  async *list(): AsyncIterable<ArchiveEntry> {
    const pages = paginateListObjectsV2({ client: this.#client }, this.#all)[Symbol.asyncIterator]();
    for (let page = await this.#ask(pages.next()); !page.done; page = await this.#ask(pages.next())) {
      yield* (page.value.Contents ?? []).flatMap((object) => this.#keptOf(object));
    }
  }

  async tidy(isOld: (leftover: string) => boolean): Promise<void> {
    try {
      for await (const upload of this.#uploads()) await this.#abortStale(upload, isOld);
    } catch (error) {
      // The store's own rules for uploads that never ended have to do then.
      if (!isNotBuilt(error)) throw s3Fault(error);
    }
  }

  async place(digest: Digest, path: string): Promise<void> {
    const archive = await this.open(digest);
    await writeNewFile(path, (file) => pipeline(archive, file));
  }

  #keptOf({ Key = "", Size = 0, LastModified }: _Object): ArchiveEntry[] {
    const digest = this.#digestIn(Key);
    return digest && LastModified ? [{ digest, sizeBytes: Size, putAt: LastModified.getTime() }] : [];
  }

  async *#uploads(): AsyncIterable<MultipartUpload> {
    let from: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | undefined = {};
    while (from) {
      const page: ListMultipartUploadsCommandOutput = await this.#client.send(
        new ListMultipartUploadsCommand({ ...this.#all, ...from }),
      );
      yield* page.Uploads ?? [];
      from =
        page.IsTruncated === true
          ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
          : undefined;
    }
  }

  /** An upload that has ended meanwhile is no fault. */
  async #abortStale({ Key, UploadId }: MultipartUpload, isOld: (leftover: string) => boolean): Promise<void> {
    if (!this.#digestIn(Key ?? "") || UploadId === undefined || !isOld(UploadId)) return;
    try {
      await this.#client.send(
        new AbortMultipartUploadCommand({ Bucket: this.settings.bucket, Key, UploadId }),
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #head(digest: Digest): Promise<{ readonly LastModified?: Date | undefined } | undefined> {
    try {
      return await this.#client.send(new HeadObjectCommand(this.#at(digest)));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw s3Fault(error);
    }
  }

  get #all(): { readonly Bucket: string; readonly Prefix: string } {
    return { Bucket: this.settings.bucket, Prefix: this.settings.prefix };
  }

  #digestIn(key: string): Digest | undefined {
    const { prefix } = this.settings;
    return key.startsWith(prefix) ? findDigest(key.slice(prefix.length)) : undefined;
  }

  #at(digest: Digest): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.settings.bucket, Key: this.settings.prefix + digest };
  }

  async #ask<Answer>(answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer;
    } catch (error) {
      throw s3Fault(error);
    }
  }
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : "unknown");

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  const metadata = error.$metadata;
  if (typeof metadata !== "object" || metadata === null || !("httpStatusCode" in metadata)) return undefined;
  return typeof metadata.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}

/** Some stores list times in ms, and all tell that of one object in whole seconds. */
const secondOf = (at: Millis): number => Math.floor(at / 1000);

const saysMissing = (error: unknown): boolean => ["NoSuchKey", "NoSuchUpload"].includes(nameOf(error));
/** Takes 404 alone for the store's word as well, since an answer to HEAD has no other. */
const isNotFound = (error: unknown): boolean => saysMissing(error) || nameOf(error) === "NotFound";
/** Some S3-compatible stores lack an operation. */
const isNotBuilt = (error: unknown): boolean =>
  nameOf(error) === "NotImplemented" || [405, 501].includes(statusOf(error) ?? 0);

/** Keeps only the fault's name and status: its other fields repeat what was signed, and by whom. */
function s3Fault(error: unknown): RemudaError {
  if (error instanceof RemudaError) return error;
  if (saysMissing(error)) return new RemudaError("archive_missing");
  const status = statusOf(error);
  const cause = status === undefined ? nameOf(error) : `${nameOf(error)}, ${status}`;
  return new RemudaError("store_unavailable", {
    message: `The store of archives did not do as it was asked (${cause})`,
  });
}
