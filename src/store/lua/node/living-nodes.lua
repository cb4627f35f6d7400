-- living-nodes: the nodes that have beaten lately.
-- KEYS  beats facts
-- ARGV  lostMs
-- REPLY nodes (JSON list of {facts, silentMs})
--- @include base

local living = {}
local beats = redis.call("ZRANGEBYSCORE", K.beats, now - tonumber(A.lostMs), "+inf", "WITHSCORES")
for i = 1, #beats, 2 do
  local facts = redis.call("HGET", K.facts, beats[i])
  if facts then table.insert(living, { facts = facts, silentMs = now - beats[i + 1] }) end
end
return plain("nodes", cjson.encode(living))
