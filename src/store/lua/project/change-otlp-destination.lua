-- change-otlp-destination: replace what is known of an OTLP destination that is still of this revision, where
-- its name is free.
-- KEYS  otlpDestinationNames otlpDestination
-- ARGV  id revision name record sealed
-- REPLY changed, missing, stale, taken
--- @include base

local revision = redis.call("HGET", K.otlpDestination, "revision")
if not revision then return plain("missing") end
local name, record, sealed = unpack(redis.call("HMGET", K.otlpDestination, "name", "record", "sealed"))
local isSame = name == A.name and record == A.record and sealed == A.sealed
-- The same change again, whose first answer was lost on its way.
if isSame and revision + 0 == A.revision + 1 then return plain("changed") end
if revision ~= A.revision then return plain("stale") end
local holder = redis.call("HGET", K.otlpDestinationNames, A.name)
if holder and holder ~= A.id then return plain("taken") end
redis.call("HDEL", K.otlpDestinationNames, name)
redis.call("HSET", K.otlpDestinationNames, A.name, A.id)
redis.call("HSET", K.otlpDestination, "name", A.name, "record", A.record, "sealed", A.sealed)
redis.call("HSET", K.otlpDestination, "revision", revision + 1, "updatedAt", now)
return plain("changed")
