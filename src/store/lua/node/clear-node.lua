-- clear-node: end what a node holds: because it drains, stops, or was lost (then nobody is left to clear up,
-- and the records go).
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waitQueue
--       waiterRecords provisional controls replaceable pendingTombstones endedLeases events nodeIndex
--       generationIndex ageIndex leaseCountIndex nodeStamps answer
-- ARGV  node why which atOnce eventsKept
-- REPLY cleared (JSON {count, isMore}: how many are left on the node; of a lost one: how many were; whether
--       to ask again), indexing (ask again)
-- `which`: `idle` (a draining node's), `all` (retired by the node), `lost` (records removed at once).
--- @include endings
--- @include failures
--- @include node/closed-nodes
--- @include removal
--- @include rebuild-index

local first = earlierAnswer()
if first then return first end

local left, budget = 0, tonumber(A.atOnce)
local function isToRetire(browser)
  return browser.state ~= "retiring" and (A.which ~= "idle" or browser.state == "idle")
end
local function clear(browser)
  if isToRetire(browser) or A.which == "lost" then budget = budget - 1 end
  if isToRetire(browser) then
    if browser.state == "launching" and browser.waiter then
      return giveUp(browser, "its node was " .. A.which, 0, 0)
    end
    retire(browser, A.why, A.why == "drained" and not browser.standby)
  end
  left = left + 1
  if A.which == "lost" then removeBrowser(browser) end
end
if not isIndexed() then return plain("indexing") end
for _, id in ipairs(idsOn(A.node)) do
  if budget < 1 then break end
  clear(read(id))
end
-- Until the last piece nothing of a lost node is lent.
if A.which == "lost" and budget > 0 then
  local failing, closed = failingNodes(), poolTerms().closed
  failing[A.node], closed[A.node] = nil, nil
  keepFailing(failing)
  keepClosed(closed)
end
-- Nobody is left to be told. A node that lives after all hears it of this Redis, if of anyone: one that has
-- taken over since may know nothing of the loss.
if A.which == "lost" and effects then effects.retire, effects.cuts = nil, nil end
return finish("cleared", cjson.encode({ count = left, isMore = budget < 1 }))
