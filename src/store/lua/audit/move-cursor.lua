-- move-cursor: note how far an export destination has been delivered to, where it is active, still what it
-- was read as, and nobody else has moved it meanwhile.
-- KEYS  destinations auditStream
-- ARGV  id revision before after outcome why
-- REPLY moved, stale
-- `outcome` is delivered, nothing (there was nothing to deliver) or lost (of which `why` tells).
--- @include base
--- @include organization/destinations
--- @include organization/audit-stream

local destination = readDestination(A.id)
if not destination or destination.status ~= "active" then return plain("stale") end
if destination.revision ~= tonumber(A.revision) then return plain("stale") end
if destination.cursor ~= A.before then return plain("stale") end
destination.cursor = A.after
if A.outcome == "delivered" then
  destination.lastSuccessAt, destination.failures, destination.nextAttemptAt = now, 0, nil
elseif A.outcome == "nothing" then
  -- An entry that came in there later would never be delivered.
  closeThrough(tonumber(A.after:match("^%d+")))
elseif A.outcome == "lost" then
  destination.lastError, destination.lastErrorAt = A.why, now
end
writeDestination(destination)
return plain("moved")
