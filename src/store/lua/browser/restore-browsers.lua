-- restore-browsers: write records that Redis has forgotten, of browsers that live on their node.
-- KEYS  pool browsers launching idle leased resetting retiring leases replaceable events nodeIndex
--       generationIndex ageIndex leaseCountIndex nodeStamps
-- ARGV  browsers eventsKept
-- REPLY restored (JSON list of their ids)
-- `browsers` is a JSON list of records, each idle or leased. One that is there, or whose lease is, stays as
-- it is.
--- @include moves

local function isThere(browser)
  if redis.call("HEXISTS", K.browsers, browser.id) == 1 then return true end
  return browser.lease and redis.call("HEXISTS", K.leases, browser.lease.id) == 1
end

local restored = {}
for _, browser in ipairs(cjson.decode(A.browsers)) do
  if not isThere(browser) then
    event(browser, "none", browser.state, "restored")
    addBrowser(browser)
    local score = browser.lease and browser.createdAt or idleScore(browser)
    redis.call("ZADD", stateKeys[browser.state], score, browser.id)
    if browser.lease then redis.call("HSET", K.leases, browser.lease.id, browser.id) end
    if browser.replaceable then redis.call("SADD", K.replaceable, browser.id) end
    table.insert(restored, browser.id)
  end
end
return plain("restored", cjson.encode(restored))
