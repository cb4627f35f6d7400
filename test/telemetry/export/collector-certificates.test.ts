import { expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { testCertificate, testKey } from "../../support/egress/egress-certificate.js";
import { about, event, sharedExportBed } from "../../support/telemetry/export-bed.js";
import { OtlpReceiver } from "../../support/telemetry/otlp-receiver.js";

const bed = sharedExportBed();

test("a collector whose certificate nobody vouches for gets nothing, and its destination says why", async () => {
  const receiver = await new OtlpReceiver().start({ key: testKey, cert: testCertificate });
  const { id, exporters, counts, notes } = bed.open({ endpoint: `https://127.0.0.1:${receiver.port}` });
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  await until("a note", () => notes.length === 1);
  expect(notes).toEqual(["The collector's certificate is not one that this daemon trusts"]);
  expect(counts).toEqual({ failed: 1 });
  expect(receiver.requests).toEqual([]);
  stream.close();
  await receiver.close();
});
