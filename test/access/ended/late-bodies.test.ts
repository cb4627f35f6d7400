import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { sharedAccessBed } from "../../support/access/access-bed.js";

const bed = sharedAccessBed(2);

/**
 * A key that is made at the second control, but for the last byte; `finish` sends it, and gives the status,
 * none where the connection is closed.
 */
async function begin(key: string): Promise<{ finish(): Promise<string> }> {
  const { hostname, port } = new URL(bed.controls[1]?.url ?? "");
  const socket = connect(Number(port), hostname).on("error", () => {});
  const body = JSON.stringify({ name: "kept in reserve" });
  const head = [
    "POST /org/api_keys HTTP/1.1",
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    // Its answer tells that the request is let in.
    "Expect: 100-continue",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await once(socket, "data");
  socket.write(body.slice(0, -1));
  return {
    async finish() {
      const closed = once(socket, "close").then(() => "");
      socket.write(body.slice(-1));
      const text = await Promise.race([closed, once(socket, "data").then(String, () => "")]);
      socket.destroy();
      return text.slice("HTTP/1.1 ".length, "HTTP/1.1 ".length + 3);
    },
  };
}

test("a key does nothing after its end by a request that it had begun before", async () => {
  const { id, key } = await bed.make();
  expect(await (await begin(key)).finish()).toBe("201");
  const last = await begin(key);
  expect((await bed.root.call(`DELETE /org/api_keys/${id}`)).status).toBe(204);
  // Where the control has looked at its open requests meanwhile, there is no connection any more.
  expect(["401", ""]).toContain(await last.finish());
  const { body } = await bed.root.call("GET /org/api_keys?name=kept+in+reserve");
  expect(body).toHaveLength(1);
});
