-- fail-export: note that a delivery to an export destination has failed, and when the next is to be tried.
-- KEYS  destinations
-- ARGV  id revision why delayMs
-- REPLY noted, stale
--- @include base
--- @include organization/destinations

local destination = readDestination(A.id)
if not destination or destination.status ~= "active" then return plain("stale") end
if destination.revision ~= tonumber(A.revision) then return plain("stale") end
destination.failures = destination.failures + 1
destination.lastError, destination.lastErrorAt = A.why, now
destination.nextAttemptAt = now + tonumber(A.delayMs)
writeDestination(destination)
return plain("noted")
