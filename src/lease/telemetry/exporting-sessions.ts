import { type BrowserId, type OtlpDestinationId, type Partition, partitionOf } from "../../base/ids.js";
import type { Browser } from "../../pool/browser.js";
import type { SessionReader } from "../../pool/launch-templates.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import { exportedTo, telemetryOf } from "../../spec/telemetry.js";

interface ExportingSessionsPorts {
  readonly poolStore: Pick<PoolStore, "leased" | "records">;
  readonly projects: Pick<ProjectStore, "partitions">;
  readonly sessionReader: Pick<SessionReader, "find">;
}

const readAtOnce = 200;

/** The sessions of the project whose telemetry goes to a destination now. */
export const makeExportingSessions =
  (ports: ExportingSessionsPorts) =>
  async (destination: OtlpDestinationId): Promise<readonly BrowserId[]> => {
    const found: BrowserId[] = [];
    for (const partition of await ports.projects.partitions())
      found.push(...(await exportingIn(ports, partition, destination)));
    return found;
  };

async function exportingIn(
  { poolStore, sessionReader }: ExportingSessionsPorts,
  partition: Partition,
  destination: OtlpDestinationId,
): Promise<readonly BrowserId[]> {
  const found: BrowserId[] = [];
  for (let from = 0; ; from += readAtOnce) {
    const listed = await poolStore.leased(partition, from, readAtOnce);
    if (listed.length === 0) return found;
    const { browsers } = await poolStore.records(
      partition,
      listed.map(({ id }) => id),
    );
    const exporting = await Promise.all(
      browsers.map((browser) => isExporting(sessionReader, browser, destination)),
    );
    found.push(...browsers.flatMap(({ id }, at) => (exporting[at] ? [id] : [])));
  }
}

async function isExporting(
  sessionReader: ExportingSessionsPorts["sessionReader"],
  browser: Browser,
  destination: OtlpDestinationId,
): Promise<boolean> {
  if (browser.state !== "leased") return false;
  const launch = await sessionReader.find(partitionOf(browser.id), browser.templateKey);
  return exportedTo(telemetryOf(launch?.telemetry, browser.lease)) === destination;
}
