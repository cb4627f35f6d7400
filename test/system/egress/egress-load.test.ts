import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { askForever } from "../../support/egress/egress-traffic.js";
import { askThroughProxy } from "../../support/egress/proxy-client.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { openTimingSite, type TimingSite } from "../../support/browser/sites/timing-site.js";

let kept: TimingSite;
let lost: TimingSite;
beforeAll(async () => {
  [kept, lost] = await Promise.all([openTimingSite(), openTimingSite()]);
});
afterAll(() => Promise.all([kept.close(), lost.close()]));

const of = (site: TimingSite, { session_id: session }: Lease): readonly number[] =>
  site.arrivals(`/${session}`);
const acquire = async (daemon: Daemon): Promise<Lease> =>
  (await daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 })).body as Lease;

/**
 * When the site comes to what is sent to it now. What had reached its machine before comes first, however
 * late the site is given a processor.
 */
async function turnOf(site: TimingSite, { session_id: session }: Lease): Promise<number> {
  const path = `/after/${session}`;
  await (await fetch(`http://${site.host}${path}`)).text();
  return await until("the site's turn", () => site.arrivals(path)[0]);
}

/** Takes `lost` away from all of them at once; when the site had read what came before each reply. */
const narrow = (daemon: Daemon, leases: readonly Lease[]): Promise<readonly number[]> =>
  Promise.all(
    leases.map(async (lease) => {
      const { status } = await daemon.call(`PATCH /browsers/${lease.session_id}`, {
        network: { allowed_hosts: [kept.host] },
      });
      expect(status).toBe(200);
      return await turnOf(lost, lease);
    }),
  );

/** What the way out of a browser says of a site. */
const askByCurl = async (daemon: Daemon, lease: Lease | undefined, { host }: TimingSite): Promise<string> =>
  (await daemon.call(`POST /browsers/${lease?.session_id}/curl`, { url: `http://${host}/` })).text;

async function proveNarrowed(daemon: Daemon, leases: readonly Lease[]): Promise<void> {
  const counts = (): string =>
    leases.map((lease) => `${of(lost, lease).length}+${of(kept, lease).length}`).join(" ");
  await until("traffic of all", () =>
    leases.every((lease) => of(lost, lease).length > 3 && of(kept, lease).length > 3),
  ).catch(async (error: unknown) => {
    const answers = await Promise.all([lost, kept].map((site) => askByCurl(daemon, leases[0], site)));
    throw new Error(`requests so far: ${counts()}; by curl: ${answers.join(" ")}`, { cause: error });
  });
  const repliedAt = await narrow(daemon, leases);
  const after = leases.map((lease) => of(kept, lease).length);
  await until("traffic of all after it", () =>
    leases.every((lease, at) => of(kept, lease).length > (after[at] ?? 0) + 3),
  );
  const late = leases.map(
    (lease, at) => of(lost, lease).filter((arrival) => arrival > (repliedAt[at] ?? 0)).length,
  );
  expect(late).toEqual(leases.map(() => 0));
}

test("under the load of a hundred clients no request that a PATCH has closed arrives after its reply", async () => {
  const fake = await makeFakeChromium();
  onTestFinished(() => fake.remove());
  const daemon = await startDaemon({ file: { ...standIn(fake), egress: { isolation: "proxy" } } });
  onTestFinished(() => daemon.stop());
  const made = await daemon.call("POST /browser_pools", { name: "herd", size: 20, headless: true });
  expect(made.status).toBe(201);
  await daemon.poolWhen("herd", (pool) => pool.available_count === 20, 180_000);
  const leases = await Promise.all(Array.from({ length: 20 }, () => acquire(daemon)));
  const { scratchDirectory } = daemon.place;
  const hosts = [lost, lost, lost, kept, kept].map(({ host }) => host);
  await Promise.all(
    leases.map(async ({ session_id: session }) =>
      onTestFinished(await askThroughProxy({ scratchDirectory, session }, { path: `/${session}`, hosts })),
    ),
  );
  await proveNarrowed(daemon, leases);
}, 300_000);

test("nor does one of real browsers", async () => {
  const daemon = await startDaemon();
  onTestFinished(() => daemon.stop());
  await daemon.makePool({ name: "herd", size: 3 });
  const leases = await Promise.all(Array.from({ length: 3 }, () => acquire(daemon)));
  for (const { session_id: session, cdp_ws_url: url } of leases) {
    const client = await connectRaw(url);
    await askForever(
      client,
      await client.attach(),
      [kept, lost].map(({ host }) => `http://${host}/${session}`),
    );
  }
  await proveNarrowed(daemon, leases);
});
