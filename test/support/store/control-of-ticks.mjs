// A control cut down to one schedule whose tick never ends. Arguments: directory of compiled sources, path of
// Redis's socket. Says "running" when the tick is under way.
const [compiled, url] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { startTicks } = await load("src/schedule/ticks.js");
const { connectForQueues } = await load("src/store/redis/connect.js");
const { queuePrefix } = await load("src/store/redis/keys.js");

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const connection = connectForQueues(
  { url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 2000 },
  log,
);
const run = () => {
  process.stdout.write("running\n");
  return new Promise(() => {});
};
const record = { ran: async () => {}, ageMs: async () => 0 };
await startTicks(
  { connection, prefix: queuePrefix, log, clock: systemClock, limitMs: 2000 },
  [{ name: "fill", periodMs: 200, run }],
  { clock: systemClock, record },
);
