import { NotFoundError, PermissionDeniedError, UnprocessableEntityError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { makeCertificate } from "../../support/egress/upstream-proxies.js";
import { credentials, sharedProxyBed } from "../../support/http/proxy-bed.js";
import { failed } from "../../support/http/http-server.js";

const bed = sharedProxyBed();
const { contents, create, detailsOf, place } = bed;

const certificate = makeCertificate();

test("the official client creates, reads, renames, checks, lists and deletes", async () => {
  const made = await bed.kernel.proxies.create({
    type: "custom",
    name: "out",
    protocol: "http",
    bypass_hosts: ["A.Example"],
    config: place(credentials),
  });
  const shown = {
    type: "custom",
    name: "out",
    protocol: "http",
    bypass_hosts: ["a.example"],
    config: place({ username: "me", has_password: true, has_ca_bundle: false }),
  };
  expect(made).toEqual({ id: expect.stringMatching(/^[0-9a-z]{24}$/), ...shown });
  const id = made.id ?? "";
  expect(await bed.kernel.proxies.retrieve(id)).toEqual(made);
  expect(await bed.kernel.proxies.update(id, { name: "renamed ü" })).toEqual({ ...made, name: "renamed ü" });
  const checked = await bed.kernel.proxies.check(id);
  expect(checked).toEqual({
    ...made,
    name: "renamed ü",
    status: "available",
    ip_address: "203.0.113.7",
    last_checked: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(bed.origin.requests.at(-1)).toBe(`GET 127.0.0.1:${bed.origin.port} /mine`);
  expect(await bed.kernel.proxies.retrieve(id)).toEqual(checked);
  expect((await bed.kernel.proxies.list()).getPaginatedItems()).toEqual([checked]);
  expect(await bed.kernel.proxies.delete(id)).toBeNull();
  const works = [
    () => bed.kernel.proxies.retrieve(id),
    () => bed.kernel.proxies.update(id, { name: "x" }),
    () => bed.kernel.proxies.check(id),
    () => bed.kernel.proxies.delete(id),
  ];
  for (const work of works) expect(await failed(work())).toBeInstanceOf(NotFoundError);
});

test("a list is walked page by page, newest first, and names may be alike", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) ids.unshift(await create({ name: "alike" }));
  const seen: (string | undefined)[] = [];
  for await (const proxy of bed.kernel.proxies.list({ limit: 2 })) seen.push(proxy.id);
  expect(seen).toEqual(ids);
  const page = await bed.daemon.call("GET /proxies?limit=2&offset=2");
  expect(
    Object.fromEntries(
      ["x-has-more", "x-next-offset", "x-limit", "x-offset"].map((name) => [name, page.headers.get(name)]),
    ),
  ).toEqual({ "x-has-more": "true", "x-next-offset": "4", "x-limit": "2", "x-offset": "2" });
  for (const limit of ["0", "101", "x"])
    expect((await bed.daemon.call(`GET /proxies?limit=${limit}`)).status).toBe(400);
  for (const id of ids) await bed.kernel.proxies.delete(id);
});

test("neither password nor certificates are answered, kept in clear or logged", async () => {
  const id = await create({ protocol: "https" }, { ...credentials, ca_bundle: certificate.cert });
  await bed.kernel.proxies.check(id);
  const refused = await bed.daemon.call("POST /proxies", {
    type: "custom",
    config: { ...credentials, host: "http://x", ca_bundle: `${certificate.cert.slice(0, 90)}` },
  });
  expect(refused.status).toBe(400);
  const shown = await bed.daemon.call(`GET /proxies/${id}`);
  expect(shown.body.config).toEqual(place({ username: "me", has_password: true, has_ca_bundle: true }));
  const body = certificate.cert.split("\n")[2] ?? "";
  expect(body.length).toBeGreaterThan(40);
  const kept = await contents();
  expect(kept).toContain(id);
  for (const text of [kept, shown.text, refused.text, bed.daemon.log]) {
    for (const secret of [
      credentials.password,
      Buffer.from(credentials.password).toString("base64"),
      Buffer.from(`me:${credentials.password}`).toString("base64"),
      body,
    ])
      expect(text).not.toContain(secret);
  }
  await bed.kernel.proxies.delete(id);
  // The audit log tells of what is no more.
  expect(await contents("remuda:{project-*")).not.toContain(id);
});

test("every fault is told at once, kinds that need a vendor are not supported, and nothing is kept", async () => {
  const before = await contents("*prox*");
  expect(
    await detailsOf("POST /proxies", {
      type: "custom",
      bypass_hosts: ["*"],
      config: { host: "a b", port: 1, password: "x\ny" },
    }),
  ).toEqual([
    "config.host: must be a host name or an address, without a scheme, a port or a path",
    "config.password: requires a username",
    "config.password: must not have control characters",
    "bypass_hosts[0]: must name more than *: leave the list out to mean every host",
  ]);
  expect(
    await detailsOf("POST /proxies", {
      type: "custom",
      colour: 1,
      config: { host: 1, port: 0, vendor: "x" },
    }),
  ).toEqual(
    expect.arrayContaining([
      "colour: is not a known field",
      "config.host: must be a string",
      "config.port: must be at least 1",
      "config.vendor: is not a known field",
    ]),
  );
  expect(await detailsOf("POST /proxies", {})).toEqual(["type: is required"]);
  expect(
    await detailsOf("POST /proxies", {
      type: "custom",
      bypass_hosts: Array.from({ length: 101 }, (_, at) => `a${at}.example`),
    }),
  ).toEqual(["bypass_hosts: must have at most 100 entries"]);
  for (const type of ["datacenter", "isp", "residential", "mobile"] as const) {
    expect(await failed(bed.kernel.proxies.create({ type, config: { country: "US" } }))).toMatchObject({
      status: 400,
      error: { code: "not_supported" },
    });
  }
  expect(await contents("*prox*")).toBe(before);
});

test.each(["10.0.0.5", "169.254.169.254", "[::1]", "2852039166"])(
  "a proxy at %s is refused, since the operator has not opened it, and nothing is kept",
  async (host) => {
    const before = await contents("*prox*");
    const details = await detailsOf("POST /proxies", {
      type: "custom",
      protocol: "http",
      config: { host, port: 8080 },
    });
    expect(details).toEqual([
      expect.stringMatching(/^config\.host: is at .*egress\.proxy_hosts does not name/),
    ]);
    expect(await contents("*prox*")).toBe(before);
  },
);

test("a name is 1 to 255 characters, none of them a control character", async () => {
  const id = await create({ name: "out" });
  for (const [name, fault] of [
    ["", "name: must have at least 1 character"],
    ["x".repeat(256), "name: must have at most 255 characters"],
    ["a\nb", "name: must not have control characters"],
  ]) {
    expect(await detailsOf(`PATCH /proxies/${id}`, { name })).toEqual([fault]);
  }
  expect(await detailsOf(`PATCH /proxies/${id}`, {})).toEqual(["name: is required"]);
  expect(await detailsOf(`PATCH /proxies/${id}`, { name: "x", config: {} })).toEqual([
    "config: is not a known field",
  ]);
  expect((await bed.kernel.proxies.retrieve(id)).name).toBe("out");
  await bed.kernel.proxies.delete(id);
});

test("what is no id names nothing, a proxy's name included", async () => {
  const id = await create({ name: "out" });
  for (const ref of ["out", "%00", "a%2Fb", "%7Bx%7D", id.toUpperCase(), `${id}0`]) {
    expect(await bed.daemon.call(`GET /proxies/${ref}`), ref).toMatchObject({
      status: 404,
      body: { code: "proxy_not_found" },
    });
  }
  await bed.kernel.proxies.delete(id);
});

test("there are no more than there may be", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => create()));
  expect(await failed(create())).toBeInstanceOf(PermissionDeniedError);
  await bed.kernel.proxies.delete(ids[0] ?? "");
  ids[0] = await create();
  await Promise.all(ids.map((id) => bed.kernel.proxies.delete(id)));
});

test("secrets that were sealed with another key are a clear error, and the proxy can still be read and deleted", async () => {
  const id = await create({}, credentials);
  const [key = ""] = await bed.client.keys(`*${id}`);
  await bed.client.hset(
    key,
    "sealed",
    new Seal(new Secret("the key of another deployment")).close(JSON.stringify({ password: "x" }), id),
  );
  const error = await failed(bed.kernel.proxies.check(id));
  expect(error).toBeInstanceOf(UnprocessableEntityError);
  expect(error).toMatchObject({
    error: { code: "secret_unreadable", message: expect.stringContaining("REMUDA_ENCRYPTION_KEY") },
  });
  expect((await bed.kernel.proxies.retrieve(id)).config).toMatchObject({ has_password: true });
  await bed.kernel.proxies.delete(id);
});
