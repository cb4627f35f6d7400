-- counts: how many browsers there are; sets tell, never counters.

local function liveCount()
  return redis.call("HLEN", K.browsers) - redis.call("ZCARD", K.retiring)
end
