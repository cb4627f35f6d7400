-- lose-nodes: take nodes without a beat for lost, once and for all: one that beats again counts as living
-- when what it held is cleared.
-- KEYS  beats facts version lost drains
-- ARGV  lostMs drainKeptMs
-- REPLY lost (JSON list of the ids of those that are not cleared yet)
-- A drain that was asked for is kept so long after its end for a node that may come back; names of nodes that
-- are gone for good would pile up.
--- @include base

-- A beat from before the clock went back counts as a beat of now.
for _, node in ipairs(redis.call("ZRANGEBYSCORE", K.beats, "(" .. now, "+inf")) do
  redis.call("ZADD", K.beats, now, node)
end
for _, node in ipairs(redis.call("ZRANGEBYSCORE", K.beats, "-inf", now - tonumber(A.lostMs))) do
  redis.call("ZREM", K.beats, node)
  redis.call("HDEL", K.facts, node)
  redis.call("INCR", K.version)
  redis.call("SADD", K.lost, node)
end
local drains = redis.call("HGETALL", K.drains)
for place = 1, #drains, 2 do
  local node, drainsUntil = drains[place], drains[place + 1]
  if drainsUntil + tonumber(A.drainKeptMs) <= now and not redis.call("ZSCORE", K.beats, node) then
    redis.call("HDEL", K.drains, node)
  end
end
local lost = redis.call("SMEMBERS", K.lost)
return plain("lost", #lost == 0 and "[]" or cjson.encode(lost))
