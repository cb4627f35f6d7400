-- gone: the node has ended a retiring browser and nothing is left of it.
-- KEYS  pool configs browsers launching idle leased resetting retiring leases waiters waiting provisional controls worn graves spent events places generations ages served changed answer
-- ARGV  browser claim lease usage eventsKept
-- REPLY gone, stale
-- `usage` is JSON of what its last lease used in all, for that lease's tombstone; `lease` is empty where nothing was counted.
--- @include remains

local first = again()
if first then return first end

local browser = read(A.browser)
if not browser or browser.state ~= "retiring" or browser.claim ~= A.claim then return plain("stale") end
local grave = browser.grave
if grave and grave.lease == A.lease then
  grave.usage = cjson.decode(A.usage)
  redis.call("HSET", K.graves, browser.id, cjson.encode(grave))
  effect("graves", browser.id)
end
bye(browser)
return finish("gone")
