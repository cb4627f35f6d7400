import { expect, test } from "vitest";
import { rulesFor } from "../support/egress/egress-bed.js";
import { ask, bodyOf, sendRaw } from "../support/egress/egress-client.js";
import { freePort } from "../support/free-port.js";
import { rawSite, site } from "../support/egress/forwarding.js";

test("an origin that breaks before its answer, and one that cannot be reached, are 502", async () => {
  const { bed, url } = await rawSite((socket) => socket.destroy());
  expect(await ask(bed.port, url)).toMatchObject({ status: 502, headers: { "x-remuda-egress": "failed" } });
  const port = await freePort();
  await bed.egress.apply(rulesFor([`127.0.0.1:${port}`]));
  expect(await ask(bed.port, `http://127.0.0.1:${port}/`)).toMatchObject({
    status: 502,
    headers: { "x-remuda-egress": "failed" },
  });
});

test.each([
  ["a status that is none", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"],
  ["a control character in its reason", "HTTP/1.1 200 \u0001\r\nContent-Length: 0\r\n\r\n"],
  [
    "a protocol nobody asked for",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
  ],
  [
    "length and chunks at once",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  ["a head that is too long", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
  ["garbage", "garbage"],
])("an origin whose answer has %s is 502, and harms nobody else", async (_, answer) => {
  const { bed, url } = await rawSite((socket) => void socket.end(answer, "latin1"));
  expect(await ask(bed.port, url)).toMatchObject({ status: 502 });
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
});

test("trailers that are none are left out", async () => {
  const { bed, url } = await rawSite(
    (socket) =>
      void socket.end(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: a\u0001\r\n\r\n",
        "latin1",
      ),
  );
  const { status, trailers } = await ask(bed.port, url).catch(() => ({ status: 502, trailers: {} }));
  expect([200, 502]).toContain(status);
  expect(trailers).toEqual({});
  expect(bed.lines.filter(({ level }) => level === "error")).toEqual([]);
});

const heads: readonly (readonly [string, number, (url: string) => string])[] = [
  ["origin form", 400, () => "GET / HTTP/1.1\r\nHost: site.test\r\n"],
  ["user information", 400, (url) => `GET ${url.replace("//", "//user:pass@")}/ HTTP/1.1\r\n`],
  ["an allowed host as user information", 400, (url) => `GET ${url}@denied.test/ HTTP/1.1\r\n`],
  ["a backslash", 400, (url) => `GET ${url}\\@denied.test/ HTTP/1.1\r\n`],
  ["a fragment", 400, (url) => `GET ${url}/#x HTTP/1.1\r\n`],
  ["https", 400, () => "GET https://site.test/ HTTP/1.1\r\n"],
  ["ftp", 400, () => "GET ftp://site.test/ HTTP/1.1\r\n"],
  ["no host", 400, () => "GET http:///path HTTP/1.1\r\n"],
  ["a port too large", 400, () => "GET http://site.test:70000/ HTTP/1.1\r\n"],
  ["an asterisk", 400, () => "OPTIONS * HTTP/1.1\r\n"],
  [
    "length and chunks at once",
    400,
    (url) => `POST ${url}/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n`,
  ],
  ["two lengths", 400, (url) => `POST ${url}/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n`],
  ["an unknown coding", 400, (url) => `POST ${url}/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n`],
  ["a folded header", 400, (url) => `GET ${url}/ HTTP/1.1\r\nTransfer-Encoding:\r\n chunked, gzip\r\n`],
  ["a space before the colon", 400, (url) => `POST ${url}/ HTTP/1.1\r\nContent-Length : 4\r\n`],
  ["a bare line feed", 400, (url) => `GET ${url}/ HTTP/1.1\nX: y\n`],
  ["garbage", 400, () => "\u0016\u0003\u0001\u0002\r\n"],
  ["a head that is too long", 431, (url) => `GET ${url}/ HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n`],
];
test.each(heads)("a request with %s is refused and goes nowhere", async (_, status, head) => {
  const { bed, url, origin } = await site((__, reply) => reply.end());
  const answer = await sendRaw(bed.port, `${head(url)}Connection: close\r\n\r\n`);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer).not.toContain("HTTP/1.1 200");
  expect(origin.accepted).toHaveLength(0);
});

test("the Host header opens nothing", async () => {
  const { bed, origin } = await site((_, reply) => reply.end());
  const answer = await sendRaw(
    bed.port,
    `GET http://127.0.0.2:${origin.port}/ HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\nConnection: close\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  expect(JSON.parse(bodyOf(answer))).toMatchObject({ code: "egress_denied", rule: "private" });
  expect(origin.accepted).toHaveLength(0);
});
