-- rebuild-index: the index is made anew from the records where somebody has moved browsers who knows of none:
-- another release.
--- @include index

-- The id of the last move that anybody has made, as the stream has it; of moves that were trimmed, too.
local function lastMoveMade()
  if redis.call("EXISTS", K.events) == 0 then return false end
  local info = redis.call("XINFO", "STREAM", K.events)
  for place = 1, #info, 2 do
    if info[place] == "last-generated-id" then return info[place + 1] end
  end
end

local function rebuildIndexIfStale()
  local made = lastMoveMade()
  if redis.call("HGET", K.nodeStamps, lastMove) == made then return end
  redis.call("DEL", K.nodeIndex, K.generationIndex, K.ageIndex, K.leaseCountIndex, K.nodeStamps)
  for _, text in ipairs(redis.call("HVALS", K.browsers)) do
    local browser = cjson.decode(text)
    redis.call("ZADD", K.nodeIndex, 0, nodeIndexEntry(browser))
    if browser.state ~= "retiring" then addToIndexes(browser) end
    stamp(browser.node)
  end
  if made then redis.call("HSET", K.nodeStamps, lastMove, made) end
end
