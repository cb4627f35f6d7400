-- removal: what goes with a browser's record, and with a deleted pool's last browser.
--- @include moves

-- Whoever waits is to be told first (discards).
local function sweepPool()
  if redis.call("HGET", K.pool, "state") ~= "deleted" then return end
  if redis.call("HLEN", K.browsers) > 0 or redis.call("ZCARD", K.waitQueue) > 0 then return end
  redis.call("DEL", K.pool, K.templates, K.browsers, K.launching, K.idle, K.leased, K.resetting, K.retiring,
    K.discarded, K.leases, K.waitQueue, K.waiterRecords, K.provisional, K.controls, K.replaceable,
    K.endedLeases, K.events, K.nodeIndex, K.generationIndex, K.ageIndex, K.leaseCountIndex, K.nodeStamps)
end

local function removeBrowser(browser)
  move(browser, "gone", browser.why or "retired")
  if redis.call("HGET", K.pool, "kind") == "on-demand" then
    redis.call("HDEL", K.templates, browser.templateKey)
  end
  sweepPool()
end
