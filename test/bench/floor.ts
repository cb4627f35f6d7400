import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Line } from "./support/line.js";
import { startHelper } from "./support/processes.js";

/** What no daemon could be faster than: see floor/server.ts. */
export interface Floor {
  open(): Promise<Line>;
  /** So many idle browsers, each with a record like this one. */
  fill(count: number, record: object): Promise<void>;
  stop(): Promise<void>;
}

export async function startFloor(): Promise<Floor> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-bench-floor-"));
  const helper = await startHelper({
    file: join(import.meta.dirname, "floor/server.js"),
    environment: { REMUDA_DATA_DIR: directory },
    find: (line) => /^listening (\d+)$/.exec(line)?.[1],
  });
  const origin = `http://127.0.0.1:${helper.said}`;
  const asking = await Line.open(origin);
  return {
    open: () => Line.open(origin),
    async fill(count, record) {
      const { status, body } = await asking.post("/fill", JSON.stringify({ count, record }));
      if (status !== 204) throw new Error(`the floor was not filled: ${body}`);
    },
    async stop() {
      asking.close();
      await helper.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
