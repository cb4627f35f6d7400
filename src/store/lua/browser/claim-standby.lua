-- claim-standby: claim launches of browsers that are to stand by for sessions on demand, as many as are
-- wanted of one launch configuration.
-- KEYS  pool templates browsers launching idle events nodeIndex generationIndex ageIndex leaseCountIndex
--       nodeStamps answer
-- ARGV  candidates standby config count claimMs eventsKept
-- REPLY claimed (JSON list of browsers), none
-- `candidates` is a JSON list of browsers to be, for which room on their node is reserved. `standby` names
-- the launch configuration `config`; so many browsers of it are to be there, those that are launching
-- included.
--- @include changes
--- @include index
--- @include node/failing-nodes
--- @include counts
--- @include events
--- @include claims
--- @include node/server

local first = earlierAnswer()
if first then return first end

if tonumber(poolFields("backoffUntil")[1] or 0) > now then return finish("none") end
local mark = '"standby":"' .. A.standby .. '"'
local short = tonumber(A.count) - countMarked(K.idle, mark) - countMarked(K.launching, mark)
local claimed, nodes = {}, failingNodes()
local function claimOne(browser)
  browser.state, browser.since, browser.createdAt, browser.served = "launching", now, now, 0
  browser.standby = A.standby
  claim(browser)
  redis.call("HSET", K.templates, browser.config, A.config)
  redis.call("ZADD", K.launching, now + tonumber(A.claimMs), browser.id)
  event(browser, "none", "launching", "standby")
  addBrowser(browser)
  table.insert(claimed, browser)
end
for _, browser in ipairs(cjson.decode(A.candidates)) do
  if #claimed < short and mayTry(nodes, browser) then claimOne(browser) end
end
if #claimed == 0 then return finish("none") end
keepFailing(nodes)
redis.call("HSETNX", K.pool, "kind", "on-demand")
redis.call("HSET", K.pool, "state", "open", "networkGeneration", 1)
noteServer()
return finish("claimed", cjson.encode(claimed))
