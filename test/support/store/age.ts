import type { Redis } from "ioredis";

/**
 * Redis's `TIME` cannot be driven, so tests write every stored instant of a key back by `ms`: afterwards all
 * is as if that much time had passed.
 */
const script = `
local ms, kept = tonumber(ARGV[1]), {}
local function earlier(value) return string.format("%.0f", tonumber(value) - ms) end
local function scores(key)
  local all = redis.call("ZRANGE", key, 0, -1, "WITHSCORES")
  for i = 1, #all, 2 do redis.call("ZADD", key, earlier(all[i + 1]), all[i]) end
end
local function fields(record, names)
  for _, name in ipairs(names) do
    if record[name] then record[name] = record[name] - ms end
  end
end
local function each(key, change)
  local all = redis.call("HGETALL", key)
  for i = 1, #all, 2 do redis.call("HSET", key, all[i], change(all[i + 1], all[i])) end
end
local function json(names)
  return function(text)
    local record = cjson.decode(text)
    fields(record, names)
    if record.lease and type(record.lease) == "table" then fields(record.lease, { "grantedAt", "registeredAt", "keyUntil" }) end
    return cjson.encode(record)
  end
end
local function deadline(text)
  return (string.gsub(text, " (%d+)$", function(at) return " " .. earlier(at) end))
end
local how = {
  pool = function(key)
    local instants = {
      "tokensAt", "backoffUntil", "earlyDeathAt", "refreshedFrom", "refreshedTo", "aheadSave", "aheadSeenAt", "boundAt", "serverCheckedAt",
    }
    for _, name in ipairs(instants) do
      local at = redis.call("HGET", key, name)
      if at and tonumber(at) > 0 then redis.call("HSET", key, name, earlier(at)) end
    end
    for _, name in ipairs({ "failing", "closed" }) do
      local nodes = cjson.decode(redis.call("HGET", key, name) or "{}")
      local instants = { "restsUntil", "failedAt", "diedAt", "silentUntil", "drainsUntil", "unregisteredSince" }
      for _, node in pairs(nodes) do fields(node, instants) end
      if next(nodes) then redis.call("HSET", key, name, cjson.encode(nodes)) end
    end
  end,
  browsers = function(key) each(key, json({ "since", "createdAt", "readyAt", "recycleAt", "lastLeaseEndedAt" })) end,
  waiterRecords = function(key) each(key, json({ "detachedAt", "lostAt", "keyUntil", "unplacedAt" })) end,
  names = function(key) each(key, json({ "deadline" })) end,
  pendingTombstones = function(key) each(key, json({ "deletedAt" })) end,
  controls = function(key) each(key, earlier) end,
  drains = function(key) each(key, earlier) end,
  -- What was added stays where it is; only a clock that goes back leaves the last of it ahead.
  events = function(key)
    local info = ms < 0 and redis.call("XINFO", "STREAM", key) or {}
    for i = 1, #info, 2 do
      if info[i] == "last-generated-id" then redis.call("XSETID", key, (string.gsub(info[i + 1], "^%d+", earlier))) end
    end
  end,
  -- An entry of a stream cannot be changed, only stored anew.
  streamEvents = function(key)
    local entries, left = redis.call("XRANGE", key, "-", "+"), redis.call("PTTL", key)
    redis.call("DEL", key)
    for _, entry in ipairs(entries) do
      entry[2][2] = earlier(entry[2][2])
      redis.call("XADD", key, entry[1], unpack(entry[2]))
    end
    if left > 0 then redis.call("PEXPIRE", key, left) end
  end,
  streamState = function(key)
    local at = redis.call("HGET", key, "oldestAt")
    if at then redis.call("HSET", key, "oldestAt", earlier(at)) end
  end,
  ticks = function(key) each(key, earlier) end,
  reservations = function(key) each(key, deadline) end,
  pools = function(key) each(key, deadline) end,
  room = function(key) each(key, deadline) end,
  ageIndex = scores, launching = scores, resetting = scores, retiring = scores, leased = scores, provisional = scores, endedLeases = scores, beats = scores, tombstoneOrder = scores, flightRecordingOrder = scores,
}
for _, key in ipairs(KEYS) do
  local change = how[string.match(key, ":(stream%a+):[^:]+$") or string.match(key, "[^:]+$")]
  if change then change(key) end
  local left = redis.call("PTTL", key)
  if left > math.max(0, ms) then redis.call("PEXPIRE", key, left - ms) end
  if left > 0 and left <= ms then redis.call("DEL", key) end
end
return 1
`;

/** Makes `ms` pass for every key that matches; one call for each slot, so that it works on a cluster. */
export async function age(redis: Redis, pattern: string, ms: number): Promise<void> {
  await ageKeys(redis, await redis.keys(pattern), ms);
}

export async function ageKeys(redis: Redis, keys: readonly string[], ms: number): Promise<void> {
  const bySlot = new Map<string, string[]>();
  for (const key of keys) {
    const slot = /\{(.*?)\}/.exec(key)?.[1] ?? key;
    bySlot.set(slot, [...(bySlot.get(slot) ?? []), key]);
  }
  await Promise.all([...bySlot.values()].map((some) => redis.eval(script, some.length, ...some, ms)));
}
