-- saves: which saves of its profile a pool has met, also after Redis's clock went back.
--- @include base
--- @include pool

-- What lies ahead was met before the clock went back: that one save is not met anew, as pool/refresh knows it
-- by its instant, and every other is, since nobody can tell how long before now the clock went back.
local function boundSaves()
  local refreshedFrom, refreshedTo, seenAt = unpack(poolFields("refreshedFrom", "refreshedTo", "aheadSeenAt"))
  if (tonumber(refreshedFrom) or 0) > now then redis.call("HSET", K.pool, "refreshedFrom", 0) end
  if (tonumber(refreshedTo) or 0) <= now then return end
  if seenAt ~= refreshedTo then redis.call("HSET", K.pool, "aheadSave", refreshedTo) end
  redis.call("HSET", K.pool, "refreshedTo", 0, "aheadSeenAt", 0)
end
