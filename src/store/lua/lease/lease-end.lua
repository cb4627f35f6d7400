-- lease-end: why a lease is over, as its browser's record, or the tombstone that is to be moved, tells.
-- KEYS  browsers pendingTombstones
-- ARGV  browser lease
-- REPLY ended (why), unknown
--- @include base
--- @include browser/browsers

local browser = read(A.browser)
if browser and browser.lastLease == A.lease and browser.lastWhy then
  return plain("ended", browser.lastWhy)
end
local text = redis.call("HGET", K.pendingTombstones, A.browser)
local tombstone = text and cjson.decode(text)
if tombstone and tombstone.lease == A.lease then return plain("ended", tombstone.reason) end
local isHeld = browser and browser.lease and browser.lease.id == A.lease
-- Only a release can end a lease that is not the browser's last: the others end with their browser.
if browser and not isHeld then return plain("ended", "released") end
return plain("unknown")
