import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { makeKeyText, maskOf, newKeySalt } from "../../src/base/crypto/key-text.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { DrivenClock } from "../support/driven-clock.js";
import { openFormBed, eachFormBed } from "../support/form/form-bed.js";
import { token } from "../support/form/scripted-forms.js";
import { send } from "../support/http/http-server.js";

const bed = eachFormBed();
const submission = { token, version: 3, values: {} };

test("one address may ask so often, and its neighbours are not held up", async () => {
  const clock = new DrivenClock();
  const limited = await openFormBed({ attemptsPerMinute: 3 }, { clock });
  const from = (address: string) => limited.ask("/open", { token }, { "x-forwarded-for": address });
  const statuses = [];
  for (let at = 0; at < 4; at += 1) statuses.push((await from("198.51.100.1")).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  const refused = await from("198.51.100.1");
  expect(refused.body).toEqual({ state: "limited" });
  expect(refused.headers.get("retry-after")).toBe("20");
  expect((await from("198.51.100.2")).status).toBe(200);
  // One customer's network of IPv6 is one address.
  for (let at = 0; at < 3; at += 1) expect((await from(`2001:db8::${at}`)).status).toBe(200);
  expect((await from("2001:db8::99")).status).toBe(429);
  await clock.advance(20_000);
  expect((await from("198.51.100.1")).status).toBe(200);
  await limited.close();
});

test("one link may be submitted ten times in a minute, from wherever", async () => {
  const clock = new DrivenClock();
  const limited = await openFormBed({}, { clock });
  limited.forms.answer = { kind: "invalid", fields: [] };
  const statuses = [];
  for (let at = 0; at < 11; at += 1)
    statuses.push(
      (await limited.ask("/submit", submission, { "x-forwarded-for": `198.51.100.${at}` })).status,
    );
  expect(statuses).toEqual([...Array<number>(10).fill(400), 429]);
  expect((await limited.ask("/submit", { ...submission, token: "another" })).status).toBe(404);
  await limited.close();
});

test("neither the log nor the audit log has a token or a value", async () => {
  const { url, ask, entries, lines, forms } = bed();
  await ask("/open", { token });
  await ask("/submit", { ...submission, values: { password: "the.secret.value" } });
  await send(`${url}/open?token=${token}`, { method: "POST", text: token, headers: {} });
  await send(`${url}/?token=${token}`);
  await send(`${url}/${token}`, { method: "POST", body: { token } });
  await ask("/submit", { ...submission, more: "the.secret.value" });
  forms.hold = Promise.reject(new Error("the store is away"));
  forms.hold.catch(() => {});
  await ask("/submit", { ...submission, values: { x: "1" } });
  await expect.poll(() => entries.length).toBe(5);
  const told = JSON.stringify([entries, lines]);
  expect(told).toContain("the store is away");
  expect(told).not.toContain(token);
  expect(told).not.toContain("the.secret.value");
});

test("no entry has a key that a browser's owner has put into the host or its own name", async () => {
  const open = await openFormBed({ host: "0.0.0.0" });
  const text = makeKeyText(new Secret("s"), newKeySalt()).reveal();
  const body = JSON.stringify({ token });
  const socket = connect(open.port, "127.0.0.1");
  socket.end(
    `POST /open HTTP/1.1\r\nHost: ${text}.example:80\r\nUser-Agent: ${text}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  socket.resume();
  await once(socket, "close");
  await expect.poll(() => open.entries.length).toBe(1);
  const masked = maskOf(text);
  expect(open.entries).toMatchObject([{ domain: `${masked}.example`, userAgent: masked }]);
  await open.close();
});

test("each question leaves an entry in the audit log", async () => {
  const { ask, entries } = bed();
  await ask("/open", { token });
  await ask("/submit", submission, { "x-forwarded-for": "198.51.100.7", "user-agent": "a browser" });
  await ask("/open", { token: "unknown" });
  await expect.poll(() => entries.length).toBe(3);
  expect(entries).toMatchObject([
    { authStrategy: "form", path: "/vaults/v_1/items/the%2Fshop", route: "/open", status: 200 },
    {
      authStrategy: "form",
      path: "/vaults/v_1/items/the%2Fshop",
      route: "/submit",
      status: 200,
      clientIp: "198.51.100.7",
      domain: "127.0.0.1",
      userAgent: "a browser",
    },
    { authStrategy: "form", path: "/open", route: "/open", status: 404 },
  ]);
});

test("a page that has made its own name resolve to loopback is refused", async () => {
  const { port } = bed();
  const ask = async (host: string): Promise<string> => {
    const socket = connect(port, "127.0.0.1");
    socket.end(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let text = "";
    socket.on("data", (data) => (text += String(data)));
    await once(socket, "close");
    return text.slice(0, 12);
  };
  expect(await ask("evil.example")).toBe("HTTP/1.1 421");
  expect(await ask("localhost")).toBe("HTTP/1.1 200");
  expect(await ask("localhost\r\nHost: evil.example")).toMatch(/HTTP\/1\.1 4(00|21)/);
});

test("a stop lets an answer under way leave, and cuts what takes longer", async () => {
  const stopped = await openFormBed();
  let release = (): void => {};
  stopped.forms.hold = new Promise<void>((resolve) => (release = resolve));
  const asked = stopped.ask("/submit", submission);
  await expect.poll(() => stopped.forms.held).toBe(1);
  const closed = stopped.close();
  release();
  expect((await asked).body).toEqual({ state: "done" });
  await closed;

  const hurried = await openFormBed({ closeLimitMs: 50 });
  hurried.forms.hold = new Promise(() => {});
  const cut = hurried.ask("/submit", submission).catch(() => "cut");
  await expect.poll(() => hurried.forms.held).toBe(1);
  await hurried.close();
  expect(await cut).toBe("cut");
});
