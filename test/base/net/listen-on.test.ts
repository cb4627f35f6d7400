import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { listenOn } from "../../../src/base/net/listen-on.js";

const server = createServer();
const other = createServer();
afterEach(() => {
  for (const each of [server, other]) each.close();
});

test("a server listens, and its later faults are its owner's", async () => {
  await listenOn(server, { host: "127.0.0.1", port: 0 });
  expect(server.listenerCount("error")).toBe(0);
});

test("the fault of a port that is taken names the setting for another, without a stack", async () => {
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const fault = await listenOn(server, { host: "127.0.0.1", port }).catch((error: unknown) => error);
  const said = `port ${port} of 127.0.0.1 is taken by another program: stop that one, or name another port in REMUDA_PORT (server.port)`;
  expect(fault).toMatchObject({ name: "CannotStart", message: said, stack: said });
});

// TEST-NET-1 (RFC 5737) is no machine's.
test("the fault of an address of another machine names the setting for it", async () => {
  await expect(listenOn(server, { host: "192.0.2.1", port: 0 })).rejects.toThrow(
    "192.0.2.1 is no address of this machine: name one that is in REMUDA_HOST (server.host)",
  );
});
