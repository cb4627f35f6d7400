import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { Clock, Millis } from "../../base/clock.js";
import { type Done, done, type Refusal, refusal } from "../../base/errors.js";
import type { ExtensionOperations } from "../../registry/extensions/extension.js";
import { type StagedArchive, type Staging, TooLarge } from "../archives.js";
import { crxHeadBytes, readCrx } from "./crx.js";

interface StoreOptions {
  readonly url: string;
  readonly limitMs: Millis;
  /** The longest download. */
  readonly maxBytes: number;
  readonly staging: Staging;
  readonly clock: Clock;
}
type StoreRequest = Parameters<ExtensionOperations["fromStore"]>[0];
type StoreZip = Awaited<ReturnType<ExtensionOperations["fromStore"]>>;

/** The store gives what this version can load; the manifests we accept are those of 156. */
const productVersion = "156.0.0.0";
/**
 * What Chromium asks the store with, beside the extension (components/update_client; arch of the machine it
 * runs on).
 */
const platforms = {
  linux: { os: "linux", arch: "x64", os_arch: "x86_64" },
  mac: { os: "mac", arch: "arm64", os_arch: "arm64" },
  win: { os: "win", arch: "x64", os_arch: "x86_64" },
} as const;

/**
 * GET /extensions/from_chrome_store: downloads whole, looks at it, and gives the zip in it. What is on disk
 * meanwhile goes with the stream.
 */
export const makeFromStore =
  (options: StoreOptions): ExtensionOperations["fromStore"] =>
  async (ask) => {
    const extension = findStoreId(ask.url);
    if (!extension) return badUrl;
    const aborter = new AbortController();
    const cancel = options.clock.after(options.limitMs, () =>
      aborter.abort(new Error(`took longer than ${options.limitMs} ms`)),
    );
    try {
      const got = await download(
        options,
        { extension, os: ask.os },
        AbortSignal.any([ask.signal, aborter.signal]),
      );
      return got.kind === "refused" ? got : await unwrap(got.value, extension);
    } catch (error) {
      if (ask.signal.aborted) return refusal("unavailable");
      if (error instanceof TooLarge)
        return badRequest(`The extension is larger than ${error.maxBytes} bytes`);
      if (isOfTheDisk(error)) throw error;
      return refusal("destination_failed", {
        message: aborter.signal.aborted
          ? "The web store did not answer in time"
          : "The web store could not be reached, or broke off",
      });
    } finally {
      cancel();
    }
  };

const badRequest = (message: string): Refusal => refusal("bad_request", { message });
const badUrl = refusal("bad_request", {
  details: [
    {
      code: "invalid_input",
      message: "url: must be the address of an extension in the Chrome Web Store, or an extension's id",
    },
  ],
});
const isOfTheDisk = (error: unknown): boolean =>
  error instanceof Error && "syscall" in error && "path" in error;

const storeHosts = new Set(["chromewebstore.google.com", "chrome.google.com"]);
const isId = (text: string): boolean => /^[a-p]{32}$/.test(text);

/** The extension's id out of an address of the store, old or new, or the id alone. */
export function findStoreId(text: string): string | undefined {
  const trimmed = text.trim();
  if (isId(trimmed)) return trimmed;
  const address = /^[a-z]+:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`;
  if (!URL.canParse(address)) return undefined;
  const { protocol, hostname, pathname } = new URL(address);
  if (!/^https?:$/.test(protocol) || !storeHosts.has(hostname)) return undefined;
  const parts = pathname.split("/");
  return parts.includes("detail") ? parts.find(isId) : undefined;
}

function addressOf(
  { url }: StoreOptions,
  { extension, os }: { extension: string; os: StoreRequest["os"] },
): string {
  const query = new URLSearchParams({
    response: "redirect",
    ...platforms[os],
    prod: "chromiumcrx",
    prodchannel: "",
    prodversion: productVersion,
    lang: "en-US",
    acceptformat: "crx2,crx3",
    x: `id=${extension}&installsource=ondemand&uc`,
  });
  return `${url}${url.includes("?") ? "&" : "?"}${query.toString()}`;
}

async function download(
  options: StoreOptions,
  asked: { extension: string; os: StoreRequest["os"] },
  signal: AbortSignal,
): Promise<Done<StagedArchive> | Refusal> {
  const reply = await fetch(addressOf(options, asked), { signal, redirect: "follow" });
  if (reply.status !== 200 || !reply.body) {
    await reply.body?.cancel();
    return whyNot(reply.status);
  }
  const body = Readable.fromWeb(reply.body as ReadableStream);
  return done(await options.staging.take(body, { maxBytes: options.maxBytes, signal }));
}

function whyNot(status: number): Refusal {
  const isUnknown = status === 204 || status === 404;
  if (isUnknown)
    return badRequest(
      "The web store has no such extension, or none that this Chromium can load on this system",
    );
  return refusal("destination_failed", { message: `The web store answered ${status}` });
}

async function unwrap(staged: StagedArchive, asked: string): Promise<StoreZip> {
  try {
    const crx = readCrx(await headOf(staged.path));
    const fault =
      crx.kind === "faulty" ? crx.fault : crx.extension === asked ? undefined : "is another extension";
    if (crx.kind === "faulty" || fault !== undefined) {
      await staged.discard();
      return refusal("destination_failed", { message: `What the web store sent ${fault}` });
    }
    return done({ bytes: zipOf(staged, crx.zipStart), sizeBytes: staged.sizeBytes - crx.zipStart });
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(crxHeadBytes), { position: 0 });
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function zipOf(staged: StagedArchive, start: number): Readable {
  const bytes = createReadStream(staged.path, { start });
  // Left behind by a failure, it goes when the staging is emptied.
  bytes.once("close", () => void staged.discard().catch(() => {}));
  return bytes;
}
