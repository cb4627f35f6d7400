-- retire-standby: browsers that stand by give way to others, or are not wanted any more.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  browsers why eventsKept
-- REPLY retired (JSON list of those that are sessions by now, and stay)
-- `browsers` is a JSON list of ids.
--- @include endings

local first = earlierAnswer()
if first then return first end

local taken = {}
for _, id in ipairs(cjson.decode(A.browsers)) do
  local browser = read(id)
  if browser and browser.state ~= "retiring" then
    if browser.standby then retire(browser, A.why) else table.insert(taken, id) end
  end
end
return finish("retired", cjson.encode(taken))
