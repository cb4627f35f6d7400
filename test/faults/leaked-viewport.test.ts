import { expect } from "vitest";
import { type BrowserId, partitionOf } from "../../src/base/ids.js";
import { type Lease } from "../support/daemon/daemon.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();

async function acquire(at: DaemonProcess): Promise<Lease> {
  const { status, body, text } = await at.call("POST /browser_pools/herd/acquire", {
    acquire_timeout_seconds: 60,
  });
  if (status !== 200) throw new Error(`acquire: ${status} ${text}`);
  return body as Lease;
}
/** A page learns of its window's new size a moment after Chromium has said that the window has it. */
async function whenSizeIs(wanted: string, { cdp_ws_url }: Lease): Promise<void> {
  const client = await connectRaw(cdp_ws_url);
  const page = await client.attach();
  const size = (): Promise<unknown> => client.evaluate("[innerWidth, innerHeight].join()", page);
  await expect.poll(size).toBe(wanted);
  await client.close();
}

/** The moves of a browser since it was first lent. */
async function movesOf(browser: string): Promise<readonly string[]> {
  const redis = bed.redis.client();
  const [key = ""] = await redis.keys(`remuda:*:{${partitionOf(browser as BrowserId)}}:events`);
  const entries = await redis.xrange(key, "-", "+");
  redis.disconnect();
  const moves = entries
    .map(([, fields]) => Object.fromEntries(pairsOf(fields)))
    .filter((move) => move["browser"] === browser)
    .map(({ from, to, why }) => `${from} to ${to}: ${why}`);
  return moves.slice(moves.indexOf("idle to leased: granted") + 1);
}
const pairsOf = (fields: readonly string[]): [string, string][] =>
  fields.flatMap((name, place) => (place % 2 === 0 ? [[name, fields[place + 1] ?? ""]] : []));

fault(
  "a control dies after a PATCH has resized a browser and before that is in its record (pool without resets)",
  async (tell) => {
    const direct = { redisUrl: bed.redis.url };
    const dying = await bed.start("control");
    const control = await bed.start("control", {}, direct);
    await bed.start("node", {}, direct);
    const viewport = { width: 1000, height: 700 };
    await control.makePool({ name: "herd", viewport, reset_on_release: "none" });
    const held = await acquire(control);
    // No client comes, after which the browser would be made as it was in any case. The record says the new
    // size with this text, once the node has answered, and nothing that comes before does.
    const resized = bed.proxy.freezeAt('"viewport":"{\\"width\\":640');
    const unanswered = dying
      .call(`PATCH /browsers/${held.session_id}`, { viewport: { width: 640, height: 480 } })
      .catch(() => undefined);
    await resized;
    bed.gone(dying);
    await dying.end("SIGKILL");
    await unanswered;
    const watch = startWatch();
    const { session_id } = held;
    expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
    const next = await acquire(control);
    expect(next).toMatchObject({ viewport });
    await whenSizeIs("1000,700", next);
    // A node that is told of a lease which it has not heard to be over puts its browser right as well. The
    // mark has it put right before anybody is given it.
    expect(await movesOf(next.session_id)).toEqual([
      "leased to resetting: released",
      "resetting to idle: fenced",
      "idle to leased: granted",
    ]);
    tell({ saw: "no answer; the next holder has the pool's viewport", recoveryMs: watch.since() });
  },
);
