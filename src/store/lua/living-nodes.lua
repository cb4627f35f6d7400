-- living-nodes: the nodes that have beaten lately.
-- KEYS  beats facts
-- ARGV  lostMs
-- REPLY nodes (JSON list of texts)
--- @include base

local living = {}
for _, node in ipairs(redis.call("ZRANGEBYSCORE", K.beats, now - tonumber(A.lostMs), "+inf")) do
  local facts = redis.call("HGET", K.facts, node)
  if facts then table.insert(living, facts) end
end
return plain("nodes", cjson.encode(living))
