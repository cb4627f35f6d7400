-- epoch: whether the Redis that answers has all that was acknowledged. Where it may not have, nothing of a
-- node is lent before the node has told what its clients have opened (register-node).
--- @include base
--- @include pool
--- @include messages
--- @include node/server
--- @include node/closed-nodes

local isServerChecked = false

-- What was answered before a restart stands in the append-only file, where there is one.
local function mayHaveLost(why)
  return why == "failover" or not redis.call("INFO", "persistence"):find("aof_enabled:1", 1, true)
end

-- The hint is repeated by the reap.
local function askToRegister(node)
  publish("remuda:node:" .. node, { kind = "register", partition = K.pool:match("{(.-)}") })
end

-- How many stand in line up to the last of a browser's kind that stood there when the epoch began. None of
-- these has been lent or given another place since, so their nodes have not registered, and all are passed
-- over at once: to give each its place behind all others would take too long in a large pool.
local function countEarlier(browser, terms)
  local node = terms.closed[browser.node]
  if not terms.epochSequence or not node or not node.unregisteredSince then return 0 end
  local last = scoreAt(terms.epochSequence, browser)
  return redis.call("ZCOUNT", K.idle, "-inf", string.format("%.0f", last))
end

local function closeAll(terms, hasLost)
  for _, node in ipairs(redis.call("HKEYS", K.nodeStamps)) do
    if isNodeStamp(node) then
      local mark = terms.closed[node] or {}
      mark.unregisteredSince, mark.mayHaveLost = now, mark.mayHaveLost or hasLost or nil
      terms.closed[node] = mark
      askToRegister(node)
    end
  end
  keepClosed(terms.closed)
  terms.epochSequence = tonumber(poolFields("sequence")[1] or 0)
  redis.call("HSET", K.pool, "epochSequence", terms.epochSequence)
end

-- Asked before anything is lent. A pool that knows of no server was written by an earlier release.
local function beginEpoch(terms, isSure)
  local sinceMs = now - terms.serverCheckedAt
  if isServerChecked or not isSure and sinceMs >= 0 and sinceMs < serverCheckMs then return end
  isServerChecked = true
  local why, id, run = epochOf(terms.replicationId, terms.run)
  redis.call("HSET", K.pool, "serverCheckedAt", now, "replicationId", id, "run", run)
  if why and why ~= "first" then closeAll(terms, mayHaveLost(why)) end
end
