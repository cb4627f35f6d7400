-- credit: launches that are paid for whatever the pool's rate is, each in the place of a browser that is
-- missing.
--- @include counts

-- What nobody misses any more is gone. Gives what is left, and how many browsers a pool of this size lacks.
local function boundCredit(size, credit)
  local missing = math.max(0, size + replaceableCount() - liveCount())
  if credit <= missing then return credit, missing end
  redis.call("HSET", K.pool, "credit", missing)
  return missing, missing
end
