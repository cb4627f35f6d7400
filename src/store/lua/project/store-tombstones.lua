-- store-tombstones: keep tombstones of sessions that are over; the oldest go when there are too many or their
-- time is past.
-- KEYS  tombstoneOrder tombstones tombstoneNames flightRecordingOrder flightRecordings
-- ARGV  tombstones most keepMs mostRecordings
-- REPLY stored
-- `tombstones` is a JSON list of texts. A name leads to the session that bore it last.
--- @include base
--- @include recordings

local tombstones = cjson.decode(A.tombstones)
local function isLast(tombstone)
  local last = redis.call("HGET", K.tombstoneNames, tombstone.name)
  return not last or tonumber(redis.call("ZSCORE", K.tombstoneOrder, last) or 0) <= tombstone.deletedAt
end
-- Whoever moves tombstones may have read one before its last usage was counted, and come after that.
local function isOlder(tombstone)
  local stored = not tombstone.isCounted and redis.call("HGET", K.tombstones, tombstone.id)
  return stored and cjson.decode(stored).isCounted
end
for _, text in ipairs(tombstones) do
  local tombstone = cjson.decode(text)
  redis.call("ZADD", K.tombstoneOrder, tombstone.deletedAt, tombstone.id)
  if not isOlder(tombstone) then redis.call("HSET", K.tombstones, tombstone.id, text) end
  if tombstone.name and isLast(tombstone) then
    redis.call("HSET", K.tombstoneNames, tombstone.name, tombstone.id)
  end
end
local function drop(ids)
  for _, id in ipairs(ids) do
    local text = redis.call("HGET", K.tombstones, id)
    local name = text and cjson.decode(text).name
    if name and redis.call("HGET", K.tombstoneNames, name) == id then
      redis.call("HDEL", K.tombstoneNames, name)
    end
    redis.call("ZREM", K.tombstoneOrder, id)
    redis.call("HDEL", K.tombstones, id)
  end
  forgetRecordings(ids)
end
-- What lies ahead was stored before Redis's clock went back: it is kept as if stored now.
for _, id in ipairs(redis.call("ZRANGEBYSCORE", K.tombstoneOrder, "(" .. now, "+inf", "LIMIT", 0, 1000)) do
  redis.call("ZADD", K.tombstoneOrder, now, id)
end
-- This is more than come at once, and few enough that nobody waits for them.
local atOnce = math.max(200, 2 * #tombstones)
drop(redis.call("ZRANGEBYSCORE", K.tombstoneOrder, "-inf", now - tonumber(A.keepMs), "LIMIT", 0, atOnce))
local excess = redis.call("ZCARD", K.tombstoneOrder) - tonumber(A.most)
if excess > 0 then drop(redis.call("ZRANGE", K.tombstoneOrder, 0, math.min(excess, atOnce) - 1)) end
sweepRecordings(tonumber(A.keepMs), tonumber(A.mostRecordings))
return plain("stored")
