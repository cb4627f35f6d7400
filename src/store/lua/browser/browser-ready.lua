-- browser-ready: the node has fenced these browsers (and reset them, where asked); they may be idle again.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  freed eventsKept controlLostMs provisionalMs
-- REPLY freed (JSON list: of each whether it was; false where the claim is not the record's)
-- `freed` is a JSON list of [browser, claim].
--- @include grants

local first = earlierAnswer()
if first then return first end

local terms, outcomes = poolTerms(), {}
for place, pair in ipairs(cjson.decode(A.freed)) do
  local browser = read(pair[1])
  outcomes[place] = browser and browser.state == "resetting" and browser.claim == pair[2] or false
  if outcomes[place] then settle(browser, "fenced", terms) end
end
return finish("freed", cjson.encode(outcomes))
