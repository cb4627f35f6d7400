-- remove-browser: the node has ended a retiring browser and nothing is left of it.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waitQueue
--       waiterRecords provisional controls replaceable pendingTombstones endedLeases events nodeIndex
--       generationIndex ageIndex leaseCountIndex nodeStamps answer
-- ARGV  browser claim lease usage eventsKept
-- REPLY gone, stale
-- `usage` is JSON of what its last lease used in all, for that lease's tombstone; `lease` is empty where
-- nothing was counted.
--- @include removal

local first = earlierAnswer()
if first then return first end

local browser = read(A.browser)
if not browser or browser.state ~= "retiring" or browser.claim ~= A.claim then return plain("stale") end
local tombstone = browser.tombstone
if tombstone and tombstone.lease == A.lease then
  tombstone.usage, tombstone.isCounted = cjson.decode(A.usage), true
  redis.call("HSET", K.pendingTombstones, browser.id, cjson.encode(tombstone))
  addEffect("tombstones", browser.id)
end
removeBrowser(browser)
return finish("gone")
