-- undo: the reply that told of this lease was lost; the browser goes back untouched.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  lease keyedMs eventsKept controlLostMs provisionalMs
-- REPLY undone, kept (a retry under its key may still fetch it), opened (a client has it), over
--- @include undo-lease

local first = earlierAnswer()
if first then return first end

local held = redis.call("HGET", K.leases, A.lease)
if not held then return plain("over") end
local browser = read(held)
-- Opened by a client, or confirmed: then another connection of the same key has it.
if not redis.call("ZSCORE", K.provisional, A.lease) then return plain("opened") end
-- Several connections of a key may lose their replies at once, each with a retry that follows.
if browser.lease.key then
  if not browser.lease.lost then
    browser.lease.lost = true
    write(browser)
  end
  redis.call("ZADD", K.provisional, now + A.keyedMs, A.lease)
  return finish("kept")
end
takeBack(browser)
return finish("undone")
