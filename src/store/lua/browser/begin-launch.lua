-- begin-launch: a node has taken up a launch; from now on it has the time of a launch, the wait for its turn
-- included.
-- KEYS  pool browsers launching
-- ARGV  browser claim launchMs
-- REPLY begun (the browser, and how its pool makes browsers ready for the next holder as things stand; empty
--       on demand), stale (the claim is not the record's)
-- Not remembered for repeats: a second one gives no more time than the first would now.
--- @include base
--- @include browser/browsers
--- @include pool

local browser = read(A.browser)
if not browser or browser.state ~= "launching" or browser.claim ~= A.claim then return plain("stale") end
redis.call("ZADD", K.launching, now + tonumber(A.launchMs), browser.id)
return plain("begun", cjson.encode({ browser = browser, reset = poolFields("reset")[1] or "" }))
