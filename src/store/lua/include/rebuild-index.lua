-- rebuild-index: the index is made anew from the records where somebody has moved browsers who knows of none:
-- another release.
--- @include index

-- How many moves there ever were, as the stream counts them; nil before Redis 7.0.
local function movesEver()
  if redis.call("EXISTS", K.events) == 0 then return 0 end
  local info = redis.call("XINFO", "STREAM", K.events)
  for place = 1, #info, 2 do
    if info[place] == "entries-added" then return info[place + 1] end
  end
end

local function isWhole()
  local ever = movesEver()
  if not ever then return redis.call("ZCARD", K.nodeIndex) == redis.call("HLEN", K.browsers) end
  return tonumber(redis.call("HGET", K.nodeStamps, moveCount) or 0) == ever
end

local function mend()
  if isWhole() then return end
  redis.call("DEL", K.nodeIndex, K.generationIndex, K.ageIndex, K.leaseCountIndex, K.nodeStamps)
  for _, text in ipairs(redis.call("HVALS", K.browsers)) do
    local browser = cjson.decode(text)
    redis.call("ZADD", K.nodeIndex, 0, nodeIndexEntry(browser))
    if browser.state ~= "retiring" then addToIndexes(browser) end
    stamp(browser.node)
  end
  redis.call("HSET", K.nodeStamps, moveCount, movesEver() or 0)
end
