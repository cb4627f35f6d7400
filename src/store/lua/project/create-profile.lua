-- create-profile: keep a new profile, where its name is free and there are not as many as there may be.
-- KEYS  profiles profileNames profile
-- ARGV  id name most
-- REPLY created, taken, many
--- @include base

if redis.call("EXISTS", K.profile) == 1 then return plain("created") end
if A.name ~= "" and redis.call("HEXISTS", K.profileNames, A.name) == 1 then return plain("taken") end
if redis.call("ZCARD", K.profiles) >= tonumber(A.most) then return plain("many") end
-- The score is in microseconds, so that two that came in one millisecond keep their order.
redis.call("ZADD", K.profiles, microseconds(), A.id)
redis.call("HSET", K.profile, "createdAt", now)
if A.name ~= "" then
  redis.call("HSET", K.profile, "name", A.name)
  redis.call("HSET", K.profileNames, A.name, A.id)
end
return plain("created")
