-- commit-profile: the archive of a save becomes the profile's state, whatever it was before. No two saves
-- have one digest, so a digest that was here before is a save asked for again; that changes nothing, since a
-- session may have started from it and been saved meanwhile.
-- KEYS  profile
-- ARGV  digest sizeBytes
-- REPLY committed, missing
--- @include base

-- A save is asked for again for 100 seconds at most, in which hardly as many others follow it.
local mostEarlier = 25

if redis.call("EXISTS", K.profile) == 0 then return plain("missing") end
local earlier = redis.call("HGET", K.profile, "earlierSaves") or ""
if earlier:find(A.digest, 1, true) then return plain("committed") end
earlier = (A.digest .. " " .. earlier):sub(1, mostEarlier * (#A.digest + 1))
redis.call("HSET", K.profile, "digest", A.digest, "sizeBytes", A.sizeBytes, "savedAt", now, "updatedAt", now)
redis.call("HSET", K.profile, "earlierSaves", earlier)
return plain("committed")
