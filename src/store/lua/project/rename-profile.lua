-- rename-profile: call a profile otherwise, where the name is free; its own name again changes nothing.
-- KEYS  profileNames profile
-- ARGV  id name
-- REPLY changed, missing, taken
--- @include base

if redis.call("EXISTS", K.profile) == 0 then return plain("missing") end
local holder = redis.call("HGET", K.profileNames, A.name)
if holder == A.id then return plain("changed") end
if holder then return plain("taken") end
local before = redis.call("HGET", K.profile, "name")
if before then redis.call("HDEL", K.profileNames, before) end
redis.call("HSET", K.profileNames, A.name, A.id)
redis.call("HSET", K.profile, "name", A.name, "updatedAt", now)
return plain("changed")
