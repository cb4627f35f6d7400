import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { isReachable } from "../../../src/gateway/relay/post.js";
import { compiled } from "../../support/compiled.js";
import { closeServer, listenLocally } from "../../support/egress/local-server.js";

const limits = { clock: systemClock, limitMs: 20_000 };
const addressOf = (text: string) => ({ host: "127.0.0.1", port: Number(text.split(":")[1]) });

test("whoever answers anything is reachable, whoever refuses connections is not", async () => {
  const server = createServer((_, response) => void response.writeHead(500).end());
  const address = addressOf(await listenLocally(server));
  expect(await isReachable(address, limits)).toBe(true);
  await closeServer(server);
  expect(await isReachable(address, limits)).toBe(false);
});

/** Asks without a descriptor left, and says on stdout what it heard. */
const withoutDescriptors = `
const { isReachable } = await import(process.argv[1]);
const { systemClock } = await import(process.argv[2]);
const { openSync } = await import("node:fs");
try { for (;;) openSync("/dev/null"); } catch {}
const heard = await isReachable({ host: "127.0.0.1", port: Number(process.argv[3]) }, { clock: systemClock, limitMs: 20000 });
process._rawDebug(String(heard));
`;

test("a process without a descriptor left has not asked, and says nothing of whoever it meant", async () => {
  const server = createServer((_, response) => void response.end());
  const { port } = addressOf(await listenLocally(server));
  const files = ["gateway/relay/post.js", "base/clock.js"].map((file) => join(compiled, "src", file));
  const { stderr } = await promisify(execFile)("sh", [
    "-c",
    'ulimit -n 80; exec "$@"',
    "sh",
    process.execPath,
    "--input-type=module",
    "-e",
    withoutDescriptors,
    ...files,
    String(port),
  ]);
  expect(stderr.trim()).toBe("undefined");
  await closeServer(server);
});
