-- remove-otlp-destination: forget an OTLP destination and free its name.
-- KEYS  otlpDestinations otlpDestinationNames otlpDestination
-- ARGV  id
-- REPLY removed, missing
--- @include base

local name = redis.call("HGET", K.otlpDestination, "name")
if not name then return plain("missing") end
redis.call("HDEL", K.otlpDestinationNames, name)
redis.call("ZREM", K.otlpDestinations, A.id)
redis.call("DEL", K.otlpDestination)
return plain("removed")
