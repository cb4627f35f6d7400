-- drop-moved-tombstones: these are kept by their project now; one that was noted anew since is moved later.
-- KEYS  pendingTombstones
-- ARGV  moved
-- REPLY dropped
-- `moved` is JSON of the texts by their ids.
--- @include base

for id, text in pairs(cjson.decode(A.moved)) do
  if redis.call("HGET", K.pendingTombstones, id) == text then redis.call("HDEL", K.pendingTombstones, id) end
end
return plain("dropped")
