-- bury: keep tombstones of sessions that are over; the oldest go when there are too many or their time is past.
-- KEYS  tombs tombstones
-- ARGV  graves most keepMs
-- REPLY buried
-- `graves` is a JSON list of texts.
--- @include base

for _, text in ipairs(cjson.decode(A.graves)) do
  local grave = cjson.decode(text)
  redis.call("ZADD", K.tombs, grave.deletedAt, grave.id)
  redis.call("HSET", K.tombstones, grave.id, text)
end
local function drop(ids)
  for _, id in ipairs(ids) do
    redis.call("ZREM", K.tombs, id)
    redis.call("HDEL", K.tombstones, id)
  end
end
drop(redis.call("ZRANGEBYSCORE", K.tombs, "-inf", now - tonumber(A.keepMs), "LIMIT", 0, 1000))
local excess = redis.call("ZCARD", K.tombs) - tonumber(A.most)
if excess > 0 then drop(redis.call("ZRANGE", K.tombs, 0, math.min(excess, 1000) - 1)) end
return plain("buried")
