import { Type } from "typebox";
import { count, countOr, hours, millis, minutes, minutesOr, ratio, seconds } from "../kinds.js";

export const fillSection = Type.Object({
  default_rate_per_minute: count(
    "fill rate of pools that name none",
    "% of size per minute",
    [0, 60_000],
  )(25),
  max_rate_per_minute: countOr(
    "highest fill rate a pool may ask for",
    "% of size per minute",
    [0, 60_000],
  )("no maximum"),
  backoff_initial_ms: millis("pause after a failed launch, doubled with each further one")(1000),
  backoff_max_ms: millis("longest such pause")(60_000),
  early_death_seconds: seconds(
    "a browser that dies within this time of its first idle counts as a failed launch",
    [0, 3600],
  )(60),
});

export const acquireSection = Type.Object({
  max_wait_seconds: seconds("one request waits at most; official clients give up at 60", [0, 3600])(50),
  max_waiters: count("callers waiting on one pool", "callers", [0, 1_000_000])(1000),
  provisional_seconds: seconds("an unconfirmed grant of a lost control returns after")(30),
  keyed_grace_seconds: seconds(
    "a waiter or lease with an idempotency key is kept for its retry",
    [0, 600],
  )(10),
  idempotency_minutes: minutes("an idempotency key is remembered")(10),
  retry_window_seconds: seconds(
    "a repeated release that names no lease ends nothing within, after the lease's end; so long the repeat of a " +
      "`DELETE` by name means what the first did",
    [0, 3600],
  )(120),
  control_beat_period_ms: millis("a control says that it is alive every", [50, 60_000])(1000),
  control_lost_after_ms: millis("a control without a beat is lost after", [200, 600_000])(5000),
});

export const recycleSection = Type.Object({
  max_age_minutes: minutesOr("an idle browser older than this is replaced")("never", 1440),
  jitter_ratio: ratio(
    "part of the age by which it varies, so that a pool is not replaced at once",
    [0, 0.9],
  )(0.1),
  max_leases: countOr("a browser that has served so many leases is replaced", "leases")("never"),
});

export const periodsSection = Type.Object({
  fill_ms: millis("pools are filled every", [50, 600_000])(1000),
  reap_ms: millis("what nobody gave back is looked for every", [50, 600_000])(5000),
  recycle_ms: millis("old and worn browsers are looked for every", [50, 3_600_000])(30_000),
});

export const tombstonesSection = Type.Object({
  keep_hours: hours("deleted sessions can be listed for")(24),
  max_per_project: count("deleted sessions kept per project", "sessions", [0, 10_000_000])(100_000),
  max_recordings_per_project: count(
    "flight recordings of browsers that ended by a fault, kept as long and per project; at most 32 KiB each",
    "recordings",
    [0, 1_000_000],
  )(1000),
});

export const limitsSection = Type.Object({
  max_pool_size: count("largest size of one pool", "browsers", [1, 100_000])(1000),
  pooled_sessions: countOr("sum of the sizes of all pools", "browsers")("no limit"),
  concurrent_sessions: countOr(
    "sessions on demand and the sizes of all pools together",
    "browsers",
    [0, 1_000_000],
  )("no limit"),
  creation_rate_per_minute: countOr(
    "POST /browsers of all callers together; as many may come at once",
    "requests per minute",
    [1, 1_000_000],
  )("no limit"),
  requests_per_minute: countOr(
    "all requests of one API key, the root key included, or of one person; as many may come at once",
    "requests per minute",
    [1, 1_000_000],
  )("no limit"),
  failed_logins_per_minute: countOr(
    "keys and tokens that are not good, of one address at one control; further ones are told to wait",
    "requests per minute",
    [1, 1_000_000],
  )("no limit"),
  max_pools: count("pools of one project", "pools")(1000),
  max_extensions: count("extensions of one project", "extensions", [0, 100_000])(1000),
  max_profiles: count("profiles of one project", "profiles", [0, 1_000_000])(10_000),
  max_proxies: count("proxies of one project", "proxies", [0, 100_000])(1000),
  max_sessions: countOr(
    "on-demand sessions of one project at once",
    "sessions",
    [0, 1_000_000],
  )("as many as nodes admit"),
  events_kept: count(
    "moves of browsers kept in a pool's stream of events",
    "events",
    [100, 10_000_000],
  )(10_000),
  events_kept_in_all: count(
    "the same of all pools together, in even shares of at least 100; some 100 bytes each",
    "events",
    [100, 1_000_000_000],
  )(200_000),
});
