import { execFile } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { compiled } from "../compiled.js";

/** How it is found out whose a connection is: by a question to the kernel, or from its table of all. */
export type PeerWay = "kernel" | "table";

/** What has Node.js go that way: without netlink there is the table alone. */
export const peerWayArguments = (way: PeerWay): string[] =>
  way === "table"
    ? ["--import", pathToFileURL(join(compiled, "test/support/egress/refuse-netlink.mjs")).href]
    : [];

const around = (code: string): string => `
  import { once } from "node:events";
  import { readFile } from "node:fs/promises";
  import { connect, createServer } from "node:net";
  import { canFindPeerUid, findPeerUid } from "${pathToFileURL(join(compiled, "src/egress/peer/peer.js")).href}";
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const open = async (options) => {
    const client = connect({ host: "127.0.0.1", ...options, port: server.address().port });
    const [socket] = await once(server, "connection");
    // Node.js keeps the address from the first question on.
    if (socket.remoteAddress !== "127.0.0.1") throw new Error("it comes from " + socket.remoteAddress);
    return { client, socket };
  };
  if (!(await canFindPeerUid())) throw new Error("this machine does not tell whose a connection is");
  const run = async () => {${code}};
  console.log(JSON.stringify(await run()));
  process.exit();`;

/**
 * Runs a function body in a process that goes one way; it has `open`, which gives both ends of a connection.
 * Resolves to what it returns.
 */
export async function runWithPeers(way: PeerWay, code: string): Promise<unknown> {
  const options = [...peerWayArguments(way), "--input-type=module", "-e", around(code)];
  const { stdout } = await promisify(execFile)(process.execPath, options);
  return JSON.parse(stdout) as unknown;
}
