-- claim-standby: claim launches of browsers that are to stand by for sessions on demand, as many as are
-- wanted of one launch template.
-- KEYS  pool templates browsers launching idle events nodeIndex generationIndex ageIndex leaseCountIndex
--       nodeStamps answer
-- ARGV  candidates standby template count claimMs eventsKept
-- REPLY claimed (JSON list of browsers), none
-- `candidates` is a JSON list of browsers to be, for which room on their node is reserved. `standby` names
-- the launch template `template`; so many browsers of it are to be there, those that are launching
-- included.
--- @include changes
--- @include node/failing-nodes
--- @include counts
--- @include browser/on-demand

local first = earlierAnswer()
if first then return first end

if tonumber(poolFields("backoffUntil")[1] or 0) > now then return finish("none") end
local mark = '"standby":"' .. A.standby .. '"'
local short = tonumber(A.count) - countMarked(K.idle, mark) - countMarked(K.launching, mark)
local claimed, nodes = {}, failingNodes()
for _, browser in ipairs(cjson.decode(A.candidates)) do
  if #claimed < short and mayTry(nodes, browser) then
    browser.standby = A.standby
    claimOnDemand(browser, A.template, "standby")
    table.insert(claimed, browser)
  end
end
if #claimed == 0 then return finish("none") end
keepFailing(nodes)
openOnDemand()
return finish("claimed", cjson.encode(claimed))
