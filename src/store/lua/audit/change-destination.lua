-- change-destination: change an export destination that is still what it was read as. One that becomes active
-- begins with what is recorded from now on; one that is paused keeps no place in the log.
-- KEYS  destinations auditStream
-- ARGV  id revision change
-- REPLY changed (its record), stale, missing
-- `change` is its status and all of where it is, as JSON.
--- @include base
--- @include organization/destinations
--- @include organization/audit-stream

local destination = readDestination(A.id)
if not destination or destination.deletedAt then return plain("missing") end
local change = cjson.decode(A.change)
local fields = { "region", "bucket", "prefix", "roleArn", "kmsKeyId", "status" }
local isSame = true
for _, field in ipairs(fields) do isSame = isSame and destination[field] == change[field] end
-- The same change again, whose first answer was lost on its way.
local isDone = isSame and destination.revision == A.revision + 1
if isDone then return plain("changed", cjson.encode(destination)) end
if destination.revision ~= tonumber(A.revision) then return plain("stale") end
if change.status == "paused" then
  destination.cursor = nil
elseif destination.status == "paused" then
  -- The log is ahead of a clock that was set back.
  local lastMs = math.max(now - 1, reachedAt())
  closeThrough(lastMs)
  destination.cursor = string.format("%013.0f-999999", lastMs)
  destination.failures = 0
end
for _, field in ipairs(fields) do destination[field] = change[field] end
-- What has failed may work now.
destination.nextAttemptAt = nil
destination.revision, destination.updatedAt = destination.revision + 1, now
return plain("changed", writeDestination(destination))
