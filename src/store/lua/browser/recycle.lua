-- recycle: mark browsers that are old or replaceable, so that their replacement is warmed first (on rebuild
-- credit).
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  maxLeases node drainMs eventsKept
-- REPLY recycled (how many were marked), indexing (ask again)
-- With `node`, every browser of that node is marked, and none of them lent while others exist: it drains, for
-- at most `drainMs`.
--- @include endings
--- @include node/closed-nodes
--- @include rebuild-index
--- @include ranks

local first = earlierAnswer()
if first then return first end
if not isIndexed() then return plain("indexing") end

local size, state, kind, hold = unpack(poolFields("size", "state", "kind", "hold"))
if state ~= "open" or kind ~= "pool" then return plain("recycled", "0") end
if A.node ~= "" and redis.call("ZLEXCOUNT", K.nodeIndex, nodeIndexRange(A.node)) == 0 then
  return plain("recycled", "0")
end
-- Where no room is left for a replacement, one goes before its replacement comes.
if hold == "capacity" then
  local replaceable = replaceableIdle()
  if replaceable then retire(replaceable, "recycled", true) end
end
-- At most a quarter of the pool is marked at a time, so that a pool that was filled at once is not rebuilt at
-- once.
local most = A.node ~= "" and 1000000 or math.max(1, math.floor(tonumber(size) / 4))
local marked = 0
local closed = poolTerms().closed
local function mark(browser)
  browser.replaceable = true
  redis.call("SADD", K.replaceable, browser.id)
  redis.call("ZREM", K.ageIndex, browser.id)
  redis.call("ZREM", K.leaseCountIndex, browser.id)
  addCredit(1)
  if browser.state == "idle" then
    if closed[browser.node] then
      rankLast(browser)
    else
      redis.call("ZADD", K.idle, idleScore(browser), browser.id)
    end
  end
  write(browser)
  marked = marked + 1
end
-- One script marks no more than this, so that nobody waits long for it in a large pool (pool/maintenance.ts
-- asks again).
local mostAtOnce = A.node ~= "" and most or 50
local function markAll(ids)
  for _, id in ipairs(ids) do
    if marked >= mostAtOnce or redis.call("SCARD", K.replaceable) >= most then return end
    local browser = read(id)
    local isOver = browser.state == "retiring" or redis.call("ZSCORE", K.discarded, id)
    local isInService = browser.state ~= "launching" and not isOver
    if isInService and not browser.replaceable then mark(browser) end
  end
end
if A.node ~= "" then
  markAll(idsOn(A.node))
  local node = closed[A.node] or {}
  node.drainsUntil = now + tonumber(A.drainMs)
  closed[A.node] = node
  keepClosed(closed)
  rankIdleOf(A.node, closed)
else
  -- No more are marked than this, so among twice as many are those that may be: one that is launching or
  -- retiring stands in no index for long.
  local looked = 2 * math.min(most, mostAtOnce)
  markAll(redis.call("ZRANGEBYSCORE", K.ageIndex, "-inf", now, "LIMIT", 0, looked))
  if A.maxLeases ~= "" then
    markAll(redis.call("ZRANGEBYSCORE", K.leaseCountIndex, A.maxLeases, "+inf", "LIMIT", 0, looked))
  end
end
return finish("recycled", tostring(marked))
