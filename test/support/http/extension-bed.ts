import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createHash } from "node:crypto";
import type Kernel from "@onkernel/sdk";
import { toFile } from "@onkernel/sdk/uploads";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { extensionZip } from "../archive/zip-bytes.js";
import { type Daemon, startDaemon } from "../daemon/daemon.js";
import { startRedis, type TestRedis } from "../store/redis.js";

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
/** A sound extension. */
export const zip = extensionZip([{ name: "a.js", content: "1" }]);

const storeKey = Buffer.from("a public key");
/** The one extension that the web store here has: `zip`, packed in version 2. */
export const storeId = sha256(storeKey)
  .slice(0, 32)
  .replaceAll(/./g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));
const packed = Buffer.concat([
  Buffer.from("Cr24"),
  Buffer.from([2, 0, 0, 0, storeKey.length, 0, 0, 0, 1, 0, 0, 0]),
  storeKey,
  Buffer.from("s"),
  zip,
]);

/** A control with its Redis and a web store of its own. */
export class ExtensionBed {
  #started: { redis: TestRedis; daemon: Daemon; kernel: Kernel } | undefined;
  /** Stands for the Chrome Web Store: an archive packed in version 2, or none. */
  readonly #store = createServer(
    (request, response) =>
      void (request.url?.includes(storeId) ? response.end(packed) : response.writeHead(204).end()),
  );

  async start(): Promise<void> {
    const redis = await startRedis();
    await once(this.#store.listen(0, "127.0.0.1"), "listening");
    const extensions = {
      store_url: `http://127.0.0.1:${(this.#store.address() as AddressInfo).port}/crx`,
      upload_stall_seconds: 1,
      upload_limit_seconds: 20,
    };
    const daemon = await startDaemon({
      role: "control",
      redisUrl: redis.url,
      file: { extensions, limits: { max_extensions: 12 } },
    });
    this.#started = { redis, daemon, kernel: daemon.kernel() };
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    await this.#running.redis.stop();
    this.#store.closeAllConnections();
    this.#store.close();
  }

  get #running() {
    if (!this.#started) throw new Error("the bed is not started");
    return this.#started;
  }
  get daemon(): Daemon {
    return this.#running.daemon;
  }
  /** The official client. */
  get kernel(): Kernel {
    return this.#running.kernel;
  }

  /** Files that are on their way. */
  staged = (): string[] => readdirSync(join(this.daemon.place.dataDir, "staging"));

  archives = (): string[] =>
    readdirSync(join(this.daemon.place.dataDir, "archives"), { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map(({ name }) => name);

  upload = async (name?: string, bytes = zip): Promise<Kernel.ExtensionUploadResponse> =>
    await this.kernel.extensions.upload({
      file: await toFile(bytes, "mine.zip"),
      ...(name !== undefined && { name }),
    });
}

/** One for all tests of a file, without extensions after each. */
export function sharedExtensionBed(): ExtensionBed {
  const bed = new ExtensionBed();
  beforeAll(() => bed.start());
  afterEach(async () => {
    // Whatever a test did, nothing of it is on its way any more.
    await expect.poll(bed.staged).toEqual([]);
    for (const { id } of (await bed.daemon.call("GET /extensions?limit=100")).body)
      await bed.kernel.extensions.delete(id);
  });
  afterAll(() => bed.stop());
  return bed;
}
