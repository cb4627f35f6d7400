-- write-record: a browser's record is written, and its node can see that it was.
--- @include base
--- @include browser/browsers

-- These stand among the nodes; none can be called so.
local lastMove, lastRevision = "moved last", "revised last"

local function isNodeStamp(field)
  return field ~= lastMove and field ~= lastRevision
end

-- The id, in the stream of events, of the last move made in this script; nil once it is written.
local movedAs

-- A new value each time, also after a failover that lost the last ones: whoever has seen this one has seen
-- all there is. The last move goes along in the same write.
local function stamp(node)
  local value = clock[1] .. "." .. clock[2]
  if not movedAs then return redis.call("HSET", K.nodeStamps, node, value) end
  redis.call("HSET", K.nodeStamps, node, value, lastMove, movedAs)
  movedAs = nil
end

-- The pool's record says something else: who asks for a node's stamp asks for this one, too.
local function stampRevision()
  redis.call("HSET", K.nodeStamps, lastRevision, microseconds())
end

local function write(browser)
  local text = cjson.encode(browser)
  redis.call("HSET", K.browsers, browser.id, text)
  stamp(browser.node)
  return text
end
