-- commit-profile: the archive of a save becomes the profile's state, whatever it was before.
-- KEYS  profile
-- ARGV  digest sizeBytes
-- REPLY committed, missing
--- @include base

if redis.call("EXISTS", K.profile) == 0 then return plain("missing") end
redis.call("HSET", K.profile, "digest", A.digest, "sizeBytes", A.sizeBytes, "savedAt", now, "updatedAt", now)
return plain("committed")
