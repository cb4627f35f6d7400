-- living-nodes: the nodes that have beaten lately.
-- KEYS  beats facts drains
-- ARGV  lostMs
-- REPLY nodes (JSON list of {facts, silentMs, drainsUntil?})
--- @include base

local living = {}
local beats = redis.call("ZRANGEBYSCORE", K.beats, now - tonumber(A.lostMs), "+inf", "WITHSCORES")
for i = 1, #beats, 2 do
  local facts = redis.call("HGET", K.facts, beats[i])
  if facts then
    local drainsUntil = tonumber(redis.call("HGET", K.drains, beats[i]) or nil)
    table.insert(living, { facts = facts, silentMs = now - beats[i + 1], drainsUntil = drainsUntil })
  end
end
return plain("nodes", cjson.encode(living))
