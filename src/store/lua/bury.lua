-- bury: keep tombstones of sessions that are over; the oldest go when there are too many or their time is past.
-- KEYS  tombs tombstones tombNames
-- ARGV  graves most keepMs
-- REPLY buried
-- `graves` is a JSON list of texts. A name leads to the session that bore it last.
--- @include base

local graves = cjson.decode(A.graves)
local function isLast(grave)
  local last = redis.call("HGET", K.tombNames, grave.name)
  return not last or tonumber(redis.call("ZSCORE", K.tombs, last) or 0) <= grave.deletedAt
end
for _, text in ipairs(graves) do
  local grave = cjson.decode(text)
  redis.call("ZADD", K.tombs, grave.deletedAt, grave.id)
  redis.call("HSET", K.tombstones, grave.id, text)
  if grave.name and isLast(grave) then redis.call("HSET", K.tombNames, grave.name, grave.id) end
end
local function drop(ids)
  for _, id in ipairs(ids) do
    local text = redis.call("HGET", K.tombstones, id)
    local name = text and cjson.decode(text).name
    if name and redis.call("HGET", K.tombNames, name) == id then redis.call("HDEL", K.tombNames, name) end
    redis.call("ZREM", K.tombs, id)
    redis.call("HDEL", K.tombstones, id)
  end
end
-- More than come, and few enough that nobody waits for them.
local atOnce = math.max(200, 2 * #graves)
drop(redis.call("ZRANGEBYSCORE", K.tombs, "-inf", now - tonumber(A.keepMs), "LIMIT", 0, atOnce))
local excess = redis.call("ZCARD", K.tombs) - tonumber(A.most)
if excess > 0 then drop(redis.call("ZRANGE", K.tombs, 0, math.min(excess, atOnce) - 1)) end
return plain("buried")
