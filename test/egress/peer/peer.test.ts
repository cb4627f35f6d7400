import { describe, expect, test } from "vitest";
import { type PeerWay, runWithPeers } from "../../support/egress/peer-program.js";

const nobody = "nobody";
const uid = process.getuid?.();
const ways: readonly PeerWay[] = ["kernel", "table"];

describe.each(ways)("asked of the kernel's %s", (way) => {
  test("a connection is its user's while a process holds it, and then nobody's", async () => {
    const found = await runWithPeers(
      way,
      `const { client, socket } = await open();
       const owner = async () => (await findPeerUid(socket)) ?? "${nobody}";
       const held = await owner();
       client.end();
       await once(client, "finish");
       const half = await owner();
       client.destroy();
       await once(client, "close");
       const closed = await owner();
       socket.resume().end();
       await once(socket, "close");
       return { held, half, closed, over: await owner() };`,
    );
    expect(found).toEqual({ held: uid, half: uid, closed: nobody, over: nobody });
  });

  test("a connection that was reset is not that of who listens at its port by now", async () => {
    const found = await runWithPeers(
      way,
      `const { client, socket } = await open();
       client.resetAndDestroy();
       await once(client, "close");
       await once(createServer().listen(socket.remotePort, "127.0.0.1"), "listening");
       return (await findPeerUid(socket)) ?? "${nobody}";`,
    );
    expect(found).toBe(nobody);
  });

  test("whose 200 connections are is found out for two reads of a table with 5,000 closed ones at most", async () => {
    const found = (await runWithPeers(
      way,
      `const closing = createServer((socket) => socket.end());
       await once(closing.listen(0, "127.0.0.1"), "listening");
       const closeOne = () => once(connect(closing.address().port, "127.0.0.1").resume(), "close");
       for (let at = 0; at < 50; at += 1) await Promise.all(Array.from({ length: 100 }, closeOne));
       const sockets = [];
       for (let at = 0; at < 200; at += 1) sockets.push((await open()).socket);
       // What the process has had of all files (proc(5)).
       const bytesRead = async () => Number(/rchar: (\\d+)/.exec(await readFile("/proc/self/io", "latin1"))[1]);
       const before = await bytesRead();
       const owners = await Promise.all(sockets.map(findPeerUid));
       const read = (await bytesRead()) - before;
       return { owners: [...new Set(owners)], read, table: (await readFile("/proc/net/tcp")).length };`,
    )) as { owners: number[]; read: number; table: number };
    expect(found.owners).toEqual([uid]);
    expect(found.table).toBeGreaterThan(5000 * 150);
    // The process reads its own figures besides. Control: the other way does read the table.
    if (way === "kernel") expect(found.read).toBeLessThan(4096);
    else expect(found.read / found.table).toSatisfy((times: number) => times > 0.9 && times < 2.5);
  });
});

test("the kernel is asked for a socket of IPv6 too that has dialled an address of IPv4", async () => {
  const found = await runWithPeers(
    "kernel",
    `return await findPeerUid((await open({ host: "::ffff:127.0.0.1", family: 6 })).socket);`,
  );
  expect(found).toBe(uid);
});
