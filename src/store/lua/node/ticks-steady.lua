-- ticks-steady: the ticks listen now; since when they have done so without a gap, and in which epoch.
-- KEYS  ticks epoch
-- ARGV  gapMs
-- REPLY steady (JSON {forMs, epoch: {number, startedAt, why}})
--- @include base
--- @include node/server

local last = tonumber(redis.call("HGET", K.ticks, "listenedAt") or "0")
local since = tonumber(redis.call("HGET", K.ticks, "listensSince") or now)
-- A clock that has gone back tells nothing of the time between.
if now - last > tonumber(A.gapMs) or last > now then since = now end
local knownId, knownRun = unpack(redis.call("HMGET", K.epoch, "replicationId", "run"))
local why, id, run = epochOf(knownId, knownRun)
if why then
  -- While Redis was away nobody could beat, however short that was.
  since = now
  redis.call("HSET", K.epoch, "startedAt", now, "why", why)
  redis.call("HINCRBY", K.epoch, "number", 1)
end
if id ~= knownId then redis.call("HSET", K.epoch, "replicationId", id, "run", run) end
redis.call("HSET", K.ticks, "listenedAt", now, "listensSince", since)
local number, startedAt, begun = unpack(redis.call("HMGET", K.epoch, "number", "startedAt", "why"))
local epoch = { number = tonumber(number), startedAt = tonumber(startedAt), why = begun }
return plain("steady", cjson.encode({ forMs = now - since, epoch = epoch }))
