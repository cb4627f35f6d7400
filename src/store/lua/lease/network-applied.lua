-- network-applied: a node has put in force what a lease asked of its network, or cannot.
-- KEYS  browsers nodeStamps
-- ARGV  browser lease revision outcome
-- REPLY applied, stale (something else is asked for by now, or the lease is over)
-- `outcome`: `applied`, or `refused`: then what was in force is. Not remembered for repeats: a second one is
-- stale.
--- @include base
--- @include write-record

local browser = read(A.browser)
local lease = browser and browser.lease
local wanted = lease and lease.networkWanted
if not wanted or lease.id ~= A.lease or wanted.revision ~= tonumber(A.revision) then return plain("stale") end
if A.outcome == "applied" then lease.network = wanted end
lease.networkWanted = nil
write(browser)
return plain("applied")
