-- discards: many browsers are over at one moment, and their records follow in pieces, so that nobody waits
-- long for one script in a large pool. What a piece leaves is retired by the next (`retireLeft` of
-- pool/pool-operations.ts), or by the reap.
--- @include endings
--- @include credit
--- @include ranks

-- How many browsers, and waiters, this script may still see to.
local budget = tonumber(A.atOnce)

-- Takes all idle browsers out of the line: from now on their key has another name, and none of them is lent.
-- Only where none of an earlier time are left there. What a flush has discarded is replaced at the fill rate,
-- all else at once.
local function discardIdle(why)
  local count = redis.call("ZCARD", K.idle)
  if count == 0 then return end
  redis.call("RENAME", K.idle, K.discarded)
  redis.call("HSET", K.pool, "discards", why)
  if why ~= "flushed" then addCredit(count) end
end

local function retireFirst(ids, why, credit)
  for _, id in ipairs(ids) do retire(read(id), why, credit) end
  budget = budget - #ids
end

local function firstOf(key)
  return budget < 1 and {} or redis.call("ZRANGE", key, 0, budget - 1)
end

local function retireDiscarded()
  local why = poolFields("discards")[1]
  if not why then return end
  retireFirst(firstOf(K.discarded), why)
  if redis.call("EXISTS", K.discarded) == 0 then redis.call("HDEL", K.pool, "discards") end
end

-- A launch of an older generation that this does not find is retired when it comes (launched).
local mostLaunches, launchesAtOnce = 1000, 100

local function retireOlderLaunches()
  local generation = poolFields("launchesFrom")[1]
  if not generation then return end
  if redis.call("ZCOUNT", K.generationIndex, "-inf", "(" .. generation) == 0 then return end
  local from, older = 0, {}
  while #older < budget and from < mostLaunches do
    local ids = redis.call("ZRANGE", K.launching, from, from + launchesAtOnce - 1)
    if #ids == 0 then break end
    for place, text in ipairs(redis.call("HMGET", K.browsers, unpack(ids))) do
      local own = text and tonumber(text:match('"generation":(%d+)'))
      local isOlder = own and own < tonumber(generation)
      if isOlder and #older < budget then table.insert(older, ids[place]) end
    end
    from = from + #ids
  end
  retireFirst(older, "discarded", true)
end

-- Launching first, then stale idle, then longest idle; never a leased one. `surge` is how many more than its
-- size the pool may have.
local function retireExcess(surge)
  local size, generation = unpack(poolFields("size", "generation"))
  local function shrink(key, from)
    local most = math.min(budget, liveCount() - tonumber(size) - surge)
    if most < 1 then return end
    retireFirst(redis.call("ZRANGEBYSCORE", key, from, "+inf", "LIMIT", 0, most), "above_size")
  end
  shrink(K.launching, "-inf")
  -- The scores put older generations and replaceable browsers after all of this generation (ranks).
  shrink(K.idle, (1 - tonumber(generation)) * perGeneration)
  shrink(K.idle, "-inf")
end

local function tellDeleted(id)
  local text = redis.call("HGET", K.waiterRecords, id)
  local waiter = text and cjson.decode(text)
  redis.call("ZREM", K.waitQueue, id)
  redis.call("HDEL", K.waiterRecords, id)
  if not waiter then return end
  if waiter.name then addEffect("names", { name = waiter.name, owner = waiter.lease }) end
  publish("remuda:control:" .. waiter.control, {
    kind = "deleted", waiter = waiter.id, connection = waiter.connection,
  })
end

-- All of a deleted pool: whoever waits is told first, and leases end before what nobody holds.
local function retireDeleted()
  local waiting = firstOf(K.waitQueue)
  for _, id in ipairs(waiting) do tellDeleted(id) end
  budget = budget - #waiting
  for _, key in ipairs({ K.leased, K.launching, K.idle, K.discarded, K.resetting }) do
    retireFirst(firstOf(key), "pool_deleted")
  end
end

-- What an open pool has to be rid of. `isToSize`: no more than its size are left, as where it has shrunk.
local function retireSuperfluous(isToSize)
  retireDiscarded()
  retireOlderLaunches()
  retireExcess(isToSize and 0 or replaceableCount())
  -- A launch that goes has its credit given back, whether or not it is above the size.
  local size, credit = unpack(poolFields("size", "credit"))
  if tonumber(credit) > 0 then boundCredit(tonumber(size), tonumber(credit)) end
end
