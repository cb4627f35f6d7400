-- remove-profile: forget a profile and free its name.
-- KEYS  profiles profileNames profile
-- ARGV  id
-- REPLY removed, missing
--- @include base

if redis.call("EXISTS", K.profile) == 0 then return plain("missing") end
local name = redis.call("HGET", K.profile, "name")
if name then redis.call("HDEL", K.profileNames, name) end
redis.call("ZREM", K.profiles, A.id)
redis.call("DEL", K.profile)
return plain("removed")
