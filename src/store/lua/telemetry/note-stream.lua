-- note-stream: a lease has begun to store events; where they are is found by this, and swept.
-- KEYS  telemetryStreams telemetryLatest
-- ARGV  browser lease
-- REPLY noted
--- @include base

redis.call("ZADD", K.telemetryStreams, "NX", now, A.browser .. " " .. A.lease)
redis.call("HSET", K.telemetryLatest, A.browser, A.lease)
return plain("noted")
