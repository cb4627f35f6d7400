import { afterEach, expect, test, vi } from "vitest";
import { TestCluster } from "../support/kubernetes/cluster.js";
import { startOperator } from "../support/kubernetes/operator.js";
import { TestPools } from "../support/kubernetes/pools.js";

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

interface Word {
  readonly status: number;
  readonly text: string;
}
/** What something before the API answers that is not the API. */
const words: readonly Word[] = [
  { status: 404, text: "default backend - 404" },
  { status: 404, text: '{"error": "there is no route"}' },
  // Another daemon of Remuda's does, or this one at another path.
  { status: 404, text: '{"code": "route_not_found", "message": "There is no such operation"}' },
  { status: 404, text: "" },
  { status: 200, text: "" },
  { status: 200, text: "<h1>It works!</h1>" },
  { status: 200, text: "{}" },
];

const eventually = (what: () => void): Promise<void> => vi.waitFor(what, { timeout: 40_000, interval: 20 });

class Place {
  constructor(
    readonly cluster: TestCluster,
    readonly pools: TestPools,
  ) {}

  /** An operator and a resource whose pool is there. */
  static async open(): Promise<Place> {
    const [cluster, pools] = [await TestCluster.open(), await TestPools.open()];
    const settings = { period_seconds: 1, request_limit_seconds: 5 };
    const operator = await startOperator({
      cluster,
      apiUrl: pools.url,
      apiKey: "a-key-of-the-organization",
      settings,
    });
    opened.push(
      () => cluster.close(),
      () => pools.close(),
      () => operator.stop(),
    );
    cluster.put("agents", { replicas: 3 });
    await eventually(() => expect(cluster.resources.get("agents")?.status).toMatchObject({ replicas: 3 }));
    return new Place(cluster, pools);
  }

  /** Resolves when another two rounds have asked. */
  async rounds(asked: string): Promise<void> {
    const count = (): number => this.pools.asked.filter((each) => each.startsWith(asked)).length;
    const before = count();
    await eventually(() => expect(count()).toBeGreaterThan(before + 1));
  }

  /** Its status says that nobody knows, in no words of others. */
  async isUnknown({ text }: Word): Promise<void> {
    const told = () => JSON.stringify(this.cluster.resources.get("agents")?.status);
    await eventually(() => expect(told()).toMatch(/"status":"Unknown","reason":"ApiUnavailable"/));
    if (text.length > 2) expect(told()).not.toContain(text.slice(0, 5));
  }

  /** The API answers itself again, and the deletion is done. */
  async recovers(): Promise<void> {
    expect(this.cluster.resources.has("agents")).toBe(true);
    expect(this.pools.pools.has("agents")).toBe(true);
    this.pools.standIn = () => undefined;
    await eventually(() => expect(this.cluster.resources.size).toBe(0));
    expect(this.pools.pools.size).toBe(0);
  }
}

test("a pool is not gone because something before the API says so: it is not made again, and a deletion waits", async () => {
  await Promise.all(
    words.map(async (word) => {
      const place = await Place.open();
      place.pools.standIn = () => word;
      await place.isUnknown(word);
      place.cluster.remove("agents");
      await place.rounds("GET /browser_pools/agents");
      expect(place.pools.asked.filter((each) => /^(POST|DELETE)/.test(each))).toHaveLength(1);
      await place.recovers();
    }),
  );
});

test("a pool is not deleted because something before the API says so", async () => {
  await Promise.all(
    words.map(async (word) => {
      const place = await Place.open();
      place.pools.standIn = (asked) => (asked.startsWith("DELETE") ? word : undefined);
      place.cluster.remove("agents");
      await place.rounds("DELETE");
      await place.isUnknown(word);
      await place.recovers();
    }),
  );
});
