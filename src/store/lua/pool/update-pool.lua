-- update-pool: write a merged specification over the revision it was merged from, and retire what it makes
-- superfluous or stale.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases provisional
--       replaceable pendingTombstones endedLeases events nodeIndex generationIndex ageIndex
--       leaseCountIndex nodeStamps answer
-- ARGV  revision revisedAt fields spec template size fillRate name isNewLaunch isNewNetwork
--       isNewRefresh discard atOnce eventsKept
-- REPLY updated, changed (by others meanwhile), busy (what was discarded before is to be retired first),
--       missing
-- `revisedAt` is when that revision was written, in microseconds, empty where that is not known: a failover
-- that lost it gives its number once more. What is discarded is lent to nobody from then on; what of it, and
-- above the size, is not retired yet is by retire-left.
--- @include browser/discards
--- @include tokens

local first = earlierAnswer()
if first then return first end

local revision, revisedAt, state, oldSize, oldRate, credit =
  unpack(poolFields("revision", "revisedAt", "state", "size", "fillRate", "credit"))
if state ~= "open" then return plain("missing") end
if revision ~= A.revision or A.revisedAt ~= "" and revisedAt ~= A.revisedAt then return plain("changed") end
-- After a change of the network all that is idle has the older one.
local isDiscarding = A.discard == "1" or A.isNewNetwork == "1"
if isDiscarding and redis.call("EXISTS", K.discarded) == 1 then return plain("busy") end

refill(tonumber(oldSize), tonumber(oldRate))
-- What is left of earlier rebuilds pays for nothing that the new size asks for.
boundCredit(tonumber(oldSize), tonumber(credit))
for field, value in pairs(cjson.decode(A.fields)) do redis.call("HSET", K.pool, field, value) end
redis.call("HSET", K.pool, "spec", A.spec, "template", A.template,
  "size", A.size, "fillRate", A.fillRate)
if A.name ~= "" then redis.call("HSET", K.pool, "name", A.name) end
-- Saves before this are no reason to flush anything (flush).
if A.isNewRefresh == "1" then redis.call("HSET", K.pool, "refreshedFrom", now) end
nextNumber("revision")
redis.call("HSET", K.pool, "revisedAt", microseconds())
stampRevision()
-- What is launched from now on has the new network: it is a new launch template too.
if A.isNewLaunch == "1" or A.isNewNetwork == "1" then
  -- The key has a time in it: others keep what they have read under a key, and a failover that lost the last
  -- generations gives their numbers once more.
  local key = string.format("%d-%s", nextNumber("generation"), microseconds())
  redis.call("HSET", K.pool, "templateKey", key)
  redis.call("HSET", K.templates, key, A.template)
  -- A new template is a new chance: what failed under the old one is no reason to wait.
  redis.call("HSET", K.pool, "failures", 0, "backoffUntil", 0, "lastError", "")
  redis.call("HDEL", K.pool, "failing")
end
if A.isNewNetwork == "1" then nextNumber("networkGeneration") end
refill(tonumber(A.size), tonumber(A.fillRate))

if isDiscarding then discardIdle(A.discard == "1" and "discarded" or "stale_network") end
if A.discard == "1" then redis.call("HSET", K.pool, "launchesFrom", poolFields("generation")[1]) end
-- Worn ones are replaced only as far as there is room below the size.
retireSuperfluous(tonumber(A.size) < tonumber(oldSize))
return finish("updated")
