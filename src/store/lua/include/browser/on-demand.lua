-- on-demand: launches in the partition of a project's sessions on demand, which has no pool.
--- @include base
--- @include index
--- @include events
--- @include claims
--- @include node/server

-- The partition is there from the first launch in it.
local function openOnDemand()
  redis.call("HSETNX", K.pool, "kind", "on-demand")
  redis.call("HSET", K.pool, "state", "open", "networkGeneration", 1)
  noteServer()
end

-- Claims the launch of a browser; its launch template is kept for it.
local function claimOnDemand(browser, template, why)
  browser.state, browser.since, browser.createdAt, browser.served = "launching", now, now, 0
  claim(browser)
  redis.call("HSET", K.templates, browser.templateKey, template)
  redis.call("ZADD", K.launching, now + tonumber(A.claimMs), browser.id)
  event(browser, "none", "launching", why)
  addBrowser(browser)
end
