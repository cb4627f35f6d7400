-- ahead: what is due later than if it were set now was set before Redis's clock went back, as by a failover
-- to another machine: it is due as if set now.
--- @include endings
--- @include node/closed-nodes
--- @include node/failing-nodes
--- @include rebuild-index
--- @include browser/saves

-- Few have such a deadline, but for the tick after the clock went back: the rest is left to the next.
local mostAtOnce = 200

local function boundScores(key, mostMs)
  local latest = string.format("%.0f", now + mostMs)
  for _, member in ipairs(redis.call("ZRANGEBYSCORE", key, "(" .. latest, "+inf", "LIMIT", 0, mostAtOnce)) do
    redis.call("ZADD", key, latest, member)
  end
end

-- Whether any was brought down.
local function boundFields(record, names, mostMs)
  local isBound = false
  for _, name in ipairs(names) do
    if type(record[name]) == "number" and record[name] > now + mostMs then
      record[name], isBound = now + mostMs, true
    end
  end
  return isBound
end

local function boundNodes(nodes, names, mostMs)
  local isBound = false
  for _, node in pairs(nodes) do isBound = boundFields(node, names, mostMs) or isBound end
  return isBound
end

local function boundPool(closed, backoffMs, silentMs)
  boundSaves()
  local names = { "backoffUntil", "earlyDeathAt" }
  local instants = poolFields(unpack(names))
  for place, name in ipairs(names) do
    local latest = name == "backoffUntil" and now + backoffMs or now
    if (tonumber(instants[place]) or 0) > latest then redis.call("HSET", K.pool, name, latest) end
  end
  local failing = failingNodes()
  local rests = boundNodes(failing, { "restsUntil" }, backoffMs)
  local faults = boundNodes(failing, { "diedAt", "failedAt" }, 0)
  if rests or faults then keepFailing(failing) end
  local silences = boundNodes(closed, { "silentUntil" }, silentMs)
  local registrations = boundNodes(closed, { "unregisteredSince" }, 0)
  if silences or registrations then keepClosed(closed) end
end

-- The instant of the last move, as the stream of moves has it: that never goes back. 0 where there was none.
local function lastMoveAt()
  local made = lastMoveMade()
  return made and tonumber(made:match("^%d+")) or 0
end

-- On a node that has not registered since an epoch began, a lease of before it stays one: that is how
-- register-node knows it. `mark` is the node's among the closed ones.
local function boundLease(lease, mark)
  local since = mark and mark.unregisteredSince
  local isBound = since and lease.grantedAt > now
  if isBound then lease.grantedAt = math.min(now, since - 1) end
  return boundFields(lease, { "grantedAt", "registeredAt" }, 0) or isBound
end

local function boundRecord(browser, closed)
  -- The browser would be in service so much longer than others.
  local aheadMs = math.max(0, browser.createdAt - now)
  if browser.recycleAt then browser.recycleAt = browser.recycleAt - aheadMs end
  local own = boundFields(browser, { "since", "createdAt", "readyAt", "lastLeaseEndedAt" }, 0)
  local theirs = browser.lease and boundLease(browser.lease, closed[browser.node])
  if own or theirs then write(browser) end
  if own and browser.state ~= "retiring" then addToIndexes(browser) end
  if browser.state == "leased" then redis.call("ZADD", K.leased, browser.createdAt, browser.id) end
end

local recordsAtOnce = 50

-- All records are read for that once, not as long as the clock takes to catch up: some in each script, in the
-- order of their places on nodes. Gives whether some are left. `boundAt` is when the last of them were, and
-- lies ahead itself where the clock goes back once more.
local function boundRecords(closed)
  local last = lastMoveAt()
  local boundFrom, boundTo, boundAt = unpack(poolFields("boundFrom", "boundTo", "boundAt"))
  local isBegun = tonumber(boundFrom or 0) >= last and tonumber(boundAt or 0) <= now
  if last <= now or isBegun and not boundTo then return false end
  local range = isBegun and "(" .. boundTo or "-"
  local places = redis.call("ZRANGEBYLEX", K.nodeIndex, range, "+", "LIMIT", 0, recordsAtOnce)
  local ids = {}
  for _, place in ipairs(places) do table.insert(ids, place:match(" (.*)$")) end
  for _, text in ipairs(textsOf(ids)) do
    if text then boundRecord(cjson.decode(text), closed) end
  end
  redis.call("HSET", K.pool, "boundFrom", string.format("%.0f", last), "boundAt", now)
  if #places < recordsAtOnce then
    redis.call("HDEL", K.pool, "boundTo")
    return false
  end
  redis.call("HSET", K.pool, "boundTo", places[#places])
  return true
end
