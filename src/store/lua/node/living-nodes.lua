-- living-nodes: the nodes that have beaten lately.
-- KEYS  beats facts drains
-- ARGV  lostMs
-- REPLY nodes (a line for each: for how many ms it was silent, until when it drains or `-`, its facts)
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
    table.insert(living, string.format("%d %s %s", now - beats[i + 1], drains[node] or "-", facts[node]))
  end
end
return plain("nodes", table.concat(living, "\n"))
