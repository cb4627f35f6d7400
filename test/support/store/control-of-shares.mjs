// A control cut down to its share of the ticks. Arguments: directory of compiled sources, path of Redis's
// socket, id of the control, names of partitions. Each tick notes every partition that it visits.
const [compiled, url, control, ...partitions] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { TickShare } = await load("src/schedule/tick-share.js");
const { repeatTicks } = await load("src/schedule/ticks.js");
const { connectAlone } = await load("src/store/redis/connect.js");
const { ScriptStore } = await load("src/store/redis/redis.js");
const { RedisTickStore } = await load("src/store/tick-store.js");

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const lostMs = 1500;
const redis = connectAlone({ url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 5000 });
const store = new ScriptStore(redis, log);
await store.open(new AbortController().signal);
const ticks = new RedisTickStore(store);
const beats = { beat: () => ticks.share(control, lostMs), leave: () => ticks.leave(control) };
const share = new TickShare({ control, beats, clock: systemClock, lostAfterMs: lostMs });
/** One that is not among the controls as Redis has them visits what is another's: it, and since when. */
const visit = `if not redis.call("ZSCORE", "remuda:{nodes}:tickControls", ARGV[2]) then
  redis.call("RPUSH", "late", ARGV[2] .. " " .. ARGV[3])
end
redis.call("SADD", "visitors:" .. ARGV[1], ARGV[2])
redis.call("HINCRBY", "visits", ARGV[1], 1)`;
const run = async () => {
  for (const partition of partitions) {
    const begunAt = Date.now();
    if (share.holds(partition)) await redis.eval(visit, 0, partition, control, begunAt);
  }
};
await share.beat();
systemClock.every(100, () => void share.beat().catch(() => {}));
repeatTicks([{ name: "visit", periodMs: 50, run }], { clock: systemClock, log });
process.on("SIGTERM", () => void share.leave().then(() => process.exit(0)));
process.stdout.write("running\n");
