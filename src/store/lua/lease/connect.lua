-- connect: register a client of a lease before its upgrade is accepted.
-- KEYS  browsers provisional nodeStamps
-- ARGV  browser lease
-- REPLY connected (the browser), over (why)
-- Not remembered for repeats: a second registration of one client only makes the node ask again before it
-- expires the lease.
--- @include base
--- @include write-record

local browser = read(A.browser)
if not browser then return plain("over", "gone") end
if not browser.lease or browser.lease.id ~= A.lease then return plain("over", browser.why or "released") end
browser.lease.registrations, browser.lease.registeredAt = browser.lease.registrations + 1, now
redis.call("ZREM", K.provisional, A.lease)
return plain("connected", write(browser))
