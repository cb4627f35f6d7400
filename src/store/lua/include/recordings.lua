-- recordings: what browsers had recorded when they ended by a fault; it goes with its browser's tombstone.

local function forgetRecordings(ids)
  for _, id in ipairs(ids) do
    redis.call("ZREM", K.flightRecordingOrder, id)
    redis.call("HDEL", K.flightRecordings, id)
  end
end

-- The oldest go when there are too many or their time is past.
local function sweepRecordings(keepMs, most)
  forgetRecordings(redis.call("ZRANGEBYSCORE", K.flightRecordingOrder, "-inf", now - keepMs, "LIMIT", 0, 200))
  local excess = redis.call("ZCARD", K.flightRecordingOrder) - most
  if excess > 0 then
    forgetRecordings(redis.call("ZRANGE", K.flightRecordingOrder, 0, math.min(excess, 200) - 1))
  end
  -- What lies ahead was stored before Redis's clock went back: it is kept as if stored now.
  local ahead = redis.call("ZRANGEBYSCORE", K.flightRecordingOrder, "(" .. now, "+inf", "LIMIT", 0, 200)
  for _, id in ipairs(ahead) do
    redis.call("ZADD", K.flightRecordingOrder, now, id)
  end
end
