-- delete-key: let nobody in with an API key any more; its record stays, until there are too many of those.
-- KEYS  keyDigests apiKeys livingKeys deletedKeys keyOrder keyUses keyEnds
-- ARGV  id request most
-- REPLY deleted, missing
--- @include base
--- @include organization/api-keys

local key = readKey(A.id)
if not key then return plain("missing") end
-- The same request again, whose first answer was lost on its way.
if key.deletedIn == A.request then return plain("deleted") end
if key.deletedAt then return plain("missing") end
key.deletedAt, key.deletedIn = now, A.request
redis.call("HDEL", K.keyDigests, key.digest)
orderKey(key, "living", timeIn(K.livingKeys, key.id), false)
redis.call("ZREM", K.livingKeys, key.id)
local at = microseconds()
redis.call("ZADD", K.deletedKeys, at, key.id)
orderKey(key, "deleted", at, true)
redis.call("ZADD", K.keyEnds, now, key.id)
writeKey(key)
local excess = redis.call("ZCARD", K.deletedKeys) - tonumber(A.most)
for _, id in ipairs(excess > 0 and redis.call("ZRANGE", K.deletedKeys, 0, excess - 1) or {}) do
  orderKey(readKey(id), "deleted", timeIn(K.deletedKeys, id), false)
  redis.call("ZREM", K.deletedKeys, id)
  redis.call("HDEL", K.apiKeys, id)
  redis.call("HDEL", K.keyUses, id)
end
return plain("deleted")
