-- rebuild-index: the index is made anew from the records where somebody has moved browsers who knows of none:
-- another release. It is made in pieces; whoever goes by it asks again until it is whole.
--- @include index
--- @include node/server

local indexedAtOnce = 50

-- The id of the last move that anybody has made, as the stream has it; of moves that were trimmed, too.
local function lastMoveMade()
  if redis.call("EXISTS", K.events) == 0 then return false end
  local info = redis.call("XINFO", "STREAM", K.events)
  for place = 1, #info, 2 do
    if info[place] == "last-generated-id" then return info[place + 1] end
  end
end

-- Takes so many records into the index, and notes how far it has come: what changes meanwhile is indexed by
-- whoever changes it. A cursor is good for one process of Redis.
local function indexMore(progress)
  local cursor, run = progress:match("^(%d+) (.*)$")
  local present = serverRun()
  local from = run == present and cursor or "0"
  local scanned = redis.call("HSCAN", K.browsers, from, "COUNT", indexedAtOnce)
  for place = 2, #scanned[2], 2 do
    local browser = cjson.decode(scanned[2][place])
    redis.call("ZADD", K.nodeIndex, 0, nodeIndexEntry(browser))
    if browser.state ~= "retiring" then addToIndexes(browser) end
    stamp(browser.node)
  end
  if scanned[1] ~= "0" then
    redis.call("HSET", K.pool, "indexing", scanned[1] .. " " .. present)
    return false
  end
  redis.call("HDEL", K.pool, "indexing")
  return true
end

-- Whether the index is whole; where it is not, this makes a piece of it. A move that another release makes
-- meanwhile is found by the next look.
local function isIndexed()
  local progress = redis.call("HGET", K.pool, "indexing")
  if progress then return indexMore(progress) end
  local made = lastMoveMade()
  if redis.call("HGET", K.nodeStamps, lastMove) == made then return true end
  redis.call("UNLINK", K.nodeIndex, K.generationIndex, K.ageIndex, K.leaseCountIndex, K.nodeStamps)
  if made then redis.call("HSET", K.nodeStamps, lastMove, made) end
  stampRevision()
  return indexMore("0 ")
end
