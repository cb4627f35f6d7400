-- create-session: claim the launch of an on-demand browser for a caller who waits for it.
-- KEYS  pool configs browsers launching leases waiting provisional controls spent events places generations ages served changed answer idempotency
-- ARGV  browser waiter config body keepMs claimMs provisionalMs eventsKept most
-- REPLY claimed (the browser), again (the waiter; still launching), granted (the browser), mismatch, over, full (as many sessions as may be), none (no room)
-- `browser` and `waiter` are JSON; the waiter is bound to the browser and stands in no queue. `browser` is empty where no node has room:
-- then only what the key was given before is given again.
--- @include repeats
--- @include events
--- @include index

local first = answeredBefore()
if first then return first end

local waiter = cjson.decode(A.waiter)
redis.call("HSET", K.controls, waiter.control, now)
local answered = repeated(waiter, function(place) return finish("again", cjson.encode(place)) end)
if answered then return answered end
if A.browser == "" then return plain("none") end

if A.most ~= "" and redis.call("HLEN", K.browsers) >= tonumber(A.most) then return plain("full") end
remember(waiter)
redis.call("HSETNX", K.pool, "kind", "on-demand")
redis.call("HSET", K.pool, "state", "open", "networkGeneration", 1)
local browser = cjson.decode(A.browser)
browser.state, browser.since, browser.createdAt, browser.served = "launching", now, now, 0
browser.waiter = waiter.id
browser.claim = tostring(redis.call("HINCRBY", K.pool, "sequence", 1))
redis.call("HSET", K.configs, browser.config, A.config)
redis.call("ZADD", K.launching, now + tonumber(A.claimMs), browser.id)
event(browser, "none", "launching", "created")
local text = enter(browser)
redis.call("HSET", K.waiting, waiter.id, cjson.encode(waiter))
return finish("claimed", text)
