-- closed-nodes: nodes whose browsers are not lent: one that does not answer, one that has not registered in
-- this epoch, and one that drains unless nothing else exists.
--- @include base
--- @include pool
--- @include node/node-index
--- @include moves
--- @include ranks

local function keepClosed(nodes)
  if next(nodes) then
    redis.call("HSET", K.pool, "closed", cjson.encode(nodes))
  else
    redis.call("HDEL", K.pool, "closed")
  end
end

-- One that was discarded has no place in line, and gets none (XX).
local function rankLast(browser)
  redis.call("ZADD", K.idle, "XX", idleScore(browser) + apart, browser.id)
end

-- Puts the idle browsers of a node where they belong in line, as that node stands now.
local function rankIdleOf(node, closed)
  for _, text in ipairs(textsOf(idsOn(node))) do
    local browser = text and isIdle(text) and cjson.decode(text)
    if browser then
      if closed[node] then
        rankLast(browser)
      else
        redis.call("ZADD", K.idle, "XX", idleScore(browser), browser.id)
      end
    end
  end
end

-- A drain ends all that is left when its time is over, and takes its mark along.
local drainEndMs = 60000

-- The browsers of as many nodes are given their places in line in one script.
local endedAtOnce = 10

-- A silence that is void is over: whoever told of it has died, and nobody else would say that the node
-- answers. So is a drain that should long have ended: a failover has brought its mark back, and the node goes
-- on. A node that lives and has not registered for `registerMs` is of an earlier release, which never does.
-- Gives whether there may be more of them.
local function endVoidMarks(closed, registerMs)
  local over = {}
  for id, node in pairs(closed) do
    if #over == endedAtOnce then break end
    local isHeard = node.silentUntil and node.silentUntil <= now
    local isDrained = node.drainsUntil and node.drainsUntil + drainEndMs <= now
    local isOlder = node.unregisteredSince and node.unregisteredSince + registerMs <= now
    if isHeard then node.silentUntil = nil end
    if isDrained then node.drainsUntil = nil end
    if isOlder then node.unregisteredSince, node.mayHaveLost = nil, nil end
    if isHeard or isDrained or isOlder then table.insert(over, id) end
  end
  for _, id in ipairs(over) do
    if not next(closed[id]) then closed[id] = nil end
    rankIdleOf(id, closed)
  end
  if #over > 0 then keepClosed(closed) end
  return #over == endedAtOnce
end

-- Counts the browsers on nodes that go on, once for all nodes that a script asks it of.
local function countElsewhere(terms)
  if terms.elsewhere then return terms.elsewhere end
  local count = redis.call("HLEN", K.browsers)
  for id, node in pairs(terms.closed) do
    if node.drainsUntil then count = count - redis.call("ZLEXCOUNT", K.nodeIndex, nodeIndexRange(id)) end
  end
  terms.elsewhere = count
  return count
end

-- A lease on a node that drains has to be able to live its time: its holder may not use it for as long as
-- that.
local function mayLend(browser, terms)
  local node = terms.closed[browser.node]
  if not node then return true end
  if node.unregisteredSince then return false end
  if (node.silentUntil or 0) > now then return false end
  if not node.drainsUntil then return true end
  return node.drainsUntil - now >= terms.timeoutSeconds * 1000 and countElsewhere(terms) == 0
end

-- Whether any closed node may: where none may, nobody has to look through all that stand last.
local function mayAnyClosedLend(terms)
  for id in pairs(terms.closed) do
    if mayLend({ node = id }, terms) then return true end
  end
  return false
end

local function isDraining(browser, terms)
  local node = terms.closed[browser.node]
  return node and node.drainsUntil
end
