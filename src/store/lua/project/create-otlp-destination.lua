-- create-otlp-destination: keep a new OTLP destination, where its name is free and there are not as many as
-- there may be.
-- KEYS  otlpDestinations otlpDestinationNames otlpDestination
-- ARGV  id name record sealed most
-- REPLY created, taken, many
--- @include base

if redis.call("EXISTS", K.otlpDestination) == 1 then return plain("created") end
if redis.call("HEXISTS", K.otlpDestinationNames, A.name) == 1 then return plain("taken") end
if redis.call("ZCARD", K.otlpDestinations) >= tonumber(A.most) then return plain("many") end
-- The score is in microseconds, so that two that came in one millisecond keep their order.
redis.call("ZADD", K.otlpDestinations, microseconds(), A.id)
redis.call("HSET", K.otlpDestinationNames, A.name, A.id)
redis.call("HSET", K.otlpDestination, "name", A.name, "record", A.record, "sealed", A.sealed)
redis.call("HSET", K.otlpDestination, "revision", 1, "createdAt", now, "updatedAt", now)
return plain("created")
