-- ticks-steady: the ticks listen now; since when they have done so without a gap.
-- KEYS  ticks
-- ARGV  gapMs
-- REPLY steady (for how many ms)
--- @include base

local last = tonumber(redis.call("HGET", K.ticks, "listenedAt") or "0")
local since = tonumber(redis.call("HGET", K.ticks, "listensSince") or now)
-- A clock that has gone back tells nothing of the time between.
if now - last > tonumber(A.gapMs) or last > now then since = now end
redis.call("HSET", K.ticks, "listenedAt", now, "listensSince", since)
return plain("steady", tostring(now - since))
