-- living-nodes: the nodes that have beaten lately.
-- KEYS  beats facts drains
-- ARGV  lostMs
-- REPLY nodes (JSON list of {facts, silentMs, drainsUntil?})
--- @include base

local function fieldsOf(key)
  local pairsOf, fields = redis.call("HGETALL", key), {}
  for place = 1, #pairsOf, 2 do fields[pairsOf[place]] = pairsOf[place + 1] end
  return fields
end

local living = {}
local beats = redis.call("ZRANGEBYSCORE", K.beats, now - tonumber(A.lostMs), "+inf", "WITHSCORES")
-- To ask for each node took most of the time.
local facts, drains = fieldsOf(K.facts), fieldsOf(K.drains)
for i = 1, #beats, 2 do
  local node = beats[i]
  if facts[node] then
    local drainsUntil = tonumber(drains[node])
    table.insert(living, { facts = facts[node], silentMs = now - beats[i + 1], drainsUntil = drainsUntil })
  end
end
return plain("nodes", cjson.encode(living))
