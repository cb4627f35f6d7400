import { expect, test } from "vitest";
import { startSilent } from "../../support/egress/upstream-proxies.js";
import { freePort } from "../../support/free-port.js";
import { credentials, sharedProxyBed } from "../../support/http/proxy-bed.js";

const bed = sharedProxyBed();
const { create, detailsOf } = bed;

test("a check tells what the proxy carries now: one that fails is unavailable, and that is no error", async () => {
  const silent = await startSilent();
  const cases: [object, string][] = [
    [credentials, "available"],
    [{ ...credentials, password: "other" }, "unavailable"],
    [{}, "unavailable"],
    [{ port: await freePort() }, "unavailable"],
    [{ port: silent.port }, "unavailable"],
    [{ host: "no-such.example" }, "unavailable"],
  ];
  for (const [config, status] of cases) {
    const id = await create({}, config);
    const checked = await bed.kernel.proxies.check(id, { url: `http://origin.example:${bed.origin.port}/` });
    expect([config, checked.status, typeof checked.last_checked]).toEqual([config, status, "string"]);
    expect(checked.ip_address).toBe(status === "available" ? "203.0.113.7" : undefined);
    await bed.kernel.proxies.delete(id);
  }
  await silent.close();
});

test("a check does not look into the operator's network", async () => {
  const id = await create({}, credentials);
  const asked = bed.upstream.targets.length;
  for (const url of [
    "http://127.0.0.1/",
    "http://localhost:6379/",
    "http://169.254.169.254/",
    "http://inside.example/",
    "http://[::1]/",
  ]) {
    expect(await detailsOf(`POST /proxies/${id}/check`, { url })).toEqual(["url: must name a public host"]);
  }
  expect(await detailsOf(`POST /proxies/${id}/check`, { url: "ftp://origin.example/" })).toEqual([
    "url: must be an http or https URL",
  ]);
  expect(bed.upstream.targets.length).toBe(asked);
  expect(await bed.kernel.proxies.retrieve(id)).not.toHaveProperty("status");
  await bed.kernel.proxies.delete(id);
});

test("this daemon's own port is no proxy", async () => {
  const id = await create({}, { port: Number(new URL(bed.daemon.url).port) });
  expect((await bed.kernel.proxies.check(id)).status).toBe("unavailable");
  expect(bed.daemon.log).not.toContain('"path":"http');
  await bed.kernel.proxies.delete(id);
});
