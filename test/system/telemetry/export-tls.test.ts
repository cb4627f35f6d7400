import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { testCertificate, testKey } from "../../support/egress/egress-certificate.js";
import { secureSiteCertificate } from "../../support/egress/egress-secure-site.js";
import { OtlpReceiver } from "../../support/telemetry/otlp-receiver.js";
import { exportSettings } from "../../support/telemetry/trace-bed.js";

let daemon: DaemonProcess;
let trusted: OtlpReceiver;
let untrusted: OtlpReceiver;
beforeEach(async () => {
  [trusted, untrusted] = await Promise.all([
    new OtlpReceiver().start({ key: testKey, cert: testCertificate }),
    new OtlpReceiver().start(secureSiteCertificate),
  ]);
});
afterEach(async () => {
  await daemon.stop();
  await Promise.all([trusted.close(), untrusted.close()]);
});

test("a collector by TLS is trusted where NODE_EXTRA_CA_CERTS vouches for it; another one gets nothing, and says why", async () => {
  const environment: Record<string, string> = {};
  const place = new DaemonPlace({ file: exportSettings, environment });
  environment["NODE_EXTRA_CA_CERTS"] = join(place.directory, "collectors.pem");
  writeFileSync(environment["NODE_EXTRA_CA_CERTS"], testCertificate);
  daemon = await spawnDaemon(place);
  const path = "/telemetry/destinations";
  const register = (name: string, { port }: OtlpReceiver) =>
    daemon.call(`POST ${path}`, { name, endpoint: `https://127.0.0.1:${port}` });
  await register("good", trusted);
  await register("stranger", untrusted);
  const exportTo = (name: string) => ({
    telemetry: { browser: { platform: { enabled: true } }, export: { otlp: { destination: { name } } } },
  });
  const made = await daemon.call("POST /browsers", { headless: true, ...exportTo("good") });
  expect(made.status).toBe(200);
  const session = `/browsers/${made.body.session_id}`;
  await daemon.call(`PATCH ${session}`, { name: "one" });
  expect(await trusted.has(1)).toMatchObject([{ type: "platform_api_call" }]);
  await daemon.call(`PATCH ${session}`, exportTo("stranger"));
  await daemon.call(`PATCH ${session}`, { name: "two" });
  const told = await until("a failure", async () => {
    const { body } = await daemon.call(`GET ${path}/stranger`);
    return body.consecutive_failures > 0 ? body : undefined;
  });
  expect(told.last_error).toBe("The collector's certificate is not one that this daemon trusts");
  expect((await daemon.call(`GET ${path}/good`)).body.last_error).toBeUndefined();
  expect(untrusted.requests).toEqual([]);
  await daemon.call(`DELETE ${session}`);
});
