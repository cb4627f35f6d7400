-- forget-stream: nothing is left of the events of a lease.
-- KEYS  telemetryStreams telemetryLatest
-- ARGV  browser lease
-- REPLY forgotten
--- @include base

redis.call("ZREM", K.telemetryStreams, A.browser .. " " .. A.lease)
if redis.call("HGET", K.telemetryLatest, A.browser) == A.lease then
  redis.call("HDEL", K.telemetryLatest, A.browser)
end
return plain("forgotten")
