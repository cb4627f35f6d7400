import { expect } from "vitest";
import { takeCensus } from "../../support/browser/chromium-census.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../bed.js";
import { fault, startWatch } from "../fault.js";

const bed = useFaultBed();

fault(
  "Redis forgets everything: browsers that no record knows end, and a pool that is made anew fills",
  async (tell) => {
    const all = await bed.start("all");
    const pool = { name: "herd", size: 6 };
    await all.makePool(pool);
    const got = (await all.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20 }))
      .body as Lease;
    const client = await connectRaw(got.cdp_ws_url);
    const redis = bed.redis.client();
    const old = new Set((await all.browsersOf("herd")).map(({ session_id }) => session_id));
    await redis.flushall();
    const watch = startWatch();
    redis.disconnect();
    expect((await client.closed).code).toBe(4410);
    const begunMs = watch.since();
    const isOver = (id: string): boolean =>
      all.log.includes(`"browser":"${id}","msg":"browser without a record ended"`);
    await until("all told", () => [...old].every(isOver), 60_000);
    await until(
      "none left",
      async () => (await takeCensus(all.place.scratchDirectory, new Set())).directories.length === 0,
    );
    const recoveryMs = watch.since();
    await all.makePool(pool);
    tell({ saw: `the holder's socket was cut after ${Math.round(begunMs)} ms`, recoveryMs });
  },
);
