-- update-pool: write a merged configuration over the revision it was merged from, and retire what it makes
-- superfluous or stale.
-- KEYS  pool templates browsers launching idle leased resetting retiring leases provisional replaceable
--       pendingTombstones endedLeases events nodeIndex generationIndex ageIndex leaseCountIndex nodeStamps
--       answer
-- ARGV  revision revisedAt fields config launchTemplate size fillRate name isNewLaunch isNewNetwork
--       isNewRefresh discard eventsKept
-- REPLY updated, changed (by others meanwhile), missing
-- `revisedAt` is when that revision was written, in microseconds, empty where that is not known: a failover
-- that lost it gives its number once more.
--- @include endings
--- @include tokens
--- @include counts

local first = earlierAnswer()
if first then return first end

local revision, revisedAt, state, oldSize, oldRate =
  unpack(poolFields("revision", "revisedAt", "state", "size", "fillRate"))
if state ~= "open" then return plain("missing") end
if revision ~= A.revision or A.revisedAt ~= "" and revisedAt ~= A.revisedAt then return plain("changed") end

refill(tonumber(oldSize), tonumber(oldRate))
for field, value in pairs(cjson.decode(A.fields)) do redis.call("HSET", K.pool, field, value) end
redis.call("HSET", K.pool, "config", A.config, "launchConfig", A.launchTemplate,
  "size", A.size, "fillRate", A.fillRate)
if A.name ~= "" then redis.call("HSET", K.pool, "name", A.name) end
-- Saves before this are no reason to flush anything (flush).
if A.isNewRefresh == "1" then redis.call("HSET", K.pool, "refreshedFrom", now) end
nextNumber("revision")
redis.call("HSET", K.pool, "revisedAt", microseconds())
-- What is launched from now on has the new network: it is a new launch configuration too.
if A.isNewLaunch == "1" or A.isNewNetwork == "1" then
  -- The key has a time in it: others keep what they have read under a key, and a failover that lost the last
  -- generations gives their numbers once more.
  local key = string.format("%d-%s", nextNumber("generation"), microseconds())
  redis.call("HSET", K.pool, "configKey", key)
  redis.call("HSET", K.templates, key, A.launchTemplate)
  -- A new configuration is a new chance: what failed under the old one is no reason to wait.
  redis.call("HSET", K.pool, "failures", 0, "backoffUntil", 0, "lastError", "")
  redis.call("HDEL", K.pool, "failing")
end
if A.isNewNetwork == "1" then nextNumber("networkGeneration") end
refill(tonumber(A.size), tonumber(A.fillRate))

local generation, network = unpack(poolFields("generation", "networkGeneration"))
generation, network = tonumber(generation), tonumber(network)

local function each(key, visit)
  for _, id in ipairs(redis.call("ZRANGE", key, 0, -1)) do visit(read(id)) end
end
local function discardStale(browser)
  if A.discard == "1" and (browser.state == "idle" or browser.generation < generation) then
    return retire(browser, "discarded", true)
  end
  if browser.state == "idle" and browser.networkGeneration < network then
    retire(browser, "stale_network", true)
  end
end
if A.discard == "1" or A.isNewNetwork == "1" then each(K.idle, discardStale) end
if A.discard == "1" then each(K.launching, discardStale) end

-- Launching first, then stale idle, then longest idle; never a leased one. Worn ones are replaced only as far
-- as there is room below.
local surge = tonumber(A.size) < tonumber(oldSize) and 0 or redis.call("SCARD", K.replaceable)
local excess = liveCount() - tonumber(A.size) - surge
local function shrink(key, from)
  if excess <= 0 then return end
  local ids = redis.call("ZRANGEBYSCORE", key, from, "+inf", "LIMIT", 0, excess)
  for _, id in ipairs(ids) do retire(read(id), "above_size") end
  excess = excess - #ids
end
shrink(K.launching, "-inf")
-- The scores put older generations and replaceable browsers after all of this generation (moves).
shrink(K.idle, (1 - generation) * perGeneration)
shrink(K.idle, "-inf")
return finish("updated")
