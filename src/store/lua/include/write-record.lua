-- write-record: a browser's record is written, and its node can see that it was.
--- @include base
--- @include browsers

-- Stands among the nodes; none can be called so.
local moveCount = "moves made"

-- Moves made in this script whose number is not written yet.
local movesMade = 0

-- A new value each time, also after a failover that lost the last ones: whoever has seen this one has seen
-- all there is. The number of moves goes along: each write goes into Redis's append-only file and to its
-- replicas, which costs more than to read it.
local function stamp(node)
  local value = clock[1] .. "." .. clock[2]
  if movesMade == 0 then return redis.call("HSET", K.nodeStamps, node, value) end
  local before = redis.call("HGET", K.nodeStamps, moveCount) or 0
  redis.call("HSET", K.nodeStamps, node, value, moveCount, string.format("%.0f", before + movesMade))
  movesMade = 0
end

local function write(browser)
  local text = cjson.encode(browser)
  redis.call("HSET", K.browsers, browser.id, text)
  stamp(browser.node)
  return text
end
