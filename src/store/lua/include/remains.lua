-- remains: what goes with a browser's record, and with a deleted pool's last browser.
--- @include moves

local function sweepPool()
  if redis.call("HGET", K.pool, "state") ~= "deleted" or redis.call("HLEN", K.browsers) > 0 then return end
  redis.call("DEL", K.pool, K.configs, K.browsers, K.launching, K.idle, K.leased, K.resetting, K.retiring,
    K.leases, K.waiters, K.waiting, K.provisional, K.controls, K.worn, K.spent, K.events,
    K.places, K.generations, K.ages, K.served, K.changed)
end

local function bye(browser)
  move(browser, "gone", browser.why or "retired")
  if redis.call("HGET", K.pool, "kind") == "on-demand" then redis.call("HDEL", K.configs, browser.config) end
  sweepPool()
end
