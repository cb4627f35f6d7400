-- use-profile: note that a browser was started from a profile.
-- KEYS  profile
-- ARGV
-- REPLY noted, missing
--- @include base

if redis.call("EXISTS", K.profile) == 0 then return plain("missing") end
redis.call("HSET", K.profile, "lastUsedAt", now)
return plain("noted")
