-- note-otlp-delivery: note what came of a delivery to an OTLP destination. The last failure stays on record
-- when a later delivery succeeds.
-- KEYS  otlpDestination
-- ARGV  error
-- REPLY noted, missing
-- `error` is empty where it did not fail.
--- @include base

if redis.call("EXISTS", K.otlpDestination) == 0 then return plain("missing") end
if A.error == "" then
  redis.call("HSET", K.otlpDestination, "failures", 0, "lastExportAt", now)
else
  redis.call("HINCRBY", K.otlpDestination, "failures", 1)
  redis.call("HSET", K.otlpDestination, "lastErrorAt", now, "lastError", A.error)
end
return plain("noted")
