-- reap: put right what was lost: jobs, messages, replies, controls. Idempotent; may overlap with itself.
-- KEYS  pool templates browsers launching idle leased resetting retiring discarded leases waitQueue
--       waiterRecords provisional controls replaceable pendingTombstones endedLeases events nodeIndex
--       generationIndex ageIndex leaseCountIndex nodeStamps
-- ARGV  claimMs launchMs keyedMs keepMs controlLostMs nodeLostMs initialMs maxMs atOnce eventsKept
--       provisionalMs
-- REPLY reaped (JSON {launch: [browser], state, isMore}: launches claimed anew; whether to ask again),
--       missing
--- @include failures
--- @include grants
--- @include undo-lease
--- @include removal
--- @include rebuild-index
--- @include ahead
--- @include browser/discards

local terms = poolTerms()
if not terms.state then return plain("missing") end
-- Before any browser is taken back, which reads the terms for itself.
if terms.state == "open" then beginEpoch(terms) end
if not isIndexed() then
  return plain("reaped", cjson.encode({ launch = {}, state = terms.state, isMore = true }))
end
boundScores(K.launching, math.max(tonumber(A.claimMs), tonumber(A.launchMs)))
boundScores(K.resetting, resetMs)
boundScores(K.retiring, retireMs)
local doubtMs = math.max(tonumber(A.provisionalMs), tonumber(A.keyedMs), tonumber(A.controlLostMs))
boundScores(K.provisional, doubtMs)
boundScores(K.endedLeases, math.max(endedLeaseMs, tonumber(A.keepMs)))
boundPool(terms.closed, tonumber(A.maxMs), tonumber(A.nodeLostMs))
-- What is left of the parts that have no budget.
local isMore = boundRecords(terms.closed)
local rememberedMs = 120000
local launchTries, retireTries, retireAgainMs = 3, 12, 10000
local launches = {}

local function overdue(key)
  if budget < 1 then return {} end
  local ids = redis.call("ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, budget)
  budget = budget - #ids
  return ids
end
for _, id in ipairs(overdue(K.launching)) do
  local browser = read(id)
  browser.tries = (browser.tries or 1) + 1
  if browser.tries > launchTries then
    giveUp(browser, "its node did not answer", tonumber(A.initialMs), tonumber(A.maxMs))
  else
    claim(browser)
    redis.call("ZADD", K.launching, now + tonumber(A.claimMs), id)
    write(browser)
    table.insert(launches, browser)
  end
end
for _, id in ipairs(overdue(K.resetting)) do
  local browser = read(id)
  if browser.tries then
    retire(browser, "reset_failed")
  else
    browser.tries = 1
    claim(browser)
    redis.call("ZADD", K.resetting, now + retireAgainMs, id)
    write(browser)
    publish("remuda:node:" .. browser.node,
      { kind = "fence", browser = id, lease = browser.fence, claim = browser.claim, mode = browser.mode })
    if browser.mode == "state" then
      addEffect("reset", { browser = id, node = browser.node, claim = browser.claim })
    end
  end
end
for _, id in ipairs(overdue(K.retiring)) do
  local browser = read(id)
  browser.tries = (browser.tries or 1) + 1
  if browser.tries > retireTries then
    -- Its node is not there, or does not answer: a node ends what it has no record of.
    removeBrowser(browser)
  else
    claim(browser)
    redis.call("ZADD", K.retiring, now + retireAgainMs, id)
    write(browser)
    addEffect("retire", { browser = id, node = browser.node, claim = browser.claim })
  end
end

local unplacedMs = 60000
-- Takes a waiter out of the line, and remembers it for a while, should its control come back (rejoin).
local function lose(waiter)
  waiter.lostAt = now
  redis.call("ZREM", K.waitQueue, waiter.id)
  redis.call("HSET", K.waiterRecords, waiter.id, cjson.encode(waiter))
  if waiter.name then addEffect("names", { name = waiter.name, owner = waiter.lease }) end
end

local function checkWaiter(waiter)
  if boundFields(waiter, { "detachedAt", "lostAt", "unplacedAt" }, 0) then
    redis.call("HSET", K.waiterRecords, waiter.id, cjson.encode(waiter))
  end
  local isLost = not controlBeats(waiter.control)
  if waiter.lostAt then
    if now - waiter.lostAt > rememberedMs then removeWaiter(waiter) end
    return
  end
  if isLost and not waiter.key and terms.kind == "pool" then return lose(waiter) end
  if waiter.key and isLost and not waiter.detachedAt then
    waiter.detachedAt = now
    redis.call("HSET", K.waiterRecords, waiter.id, cjson.encode(waiter))
  end
  -- Its control has it launched again at once, or gives it up: a failover may bring back one of which it
  -- knows nothing any more.
  local isForgotten = waiter.unplacedAt and now - waiter.unplacedAt > unplacedMs
  local isOver = isForgotten or waiter.detachedAt and now - waiter.detachedAt > tonumber(A.keyedMs)
  if isOver or isLost and not waiter.key then giveUpPlace(waiter) end
end
-- Some of them in each script. A walk that a restart of Redis spoils is made again by the next reap.
local waitersAtOnce = 200
local function checkWaiters()
  local from = poolFields("reapedWaiters")[1] or "0"
  local scanned = redis.call("HSCAN", K.waiterRecords, from, "COUNT", waitersAtOnce)
  for place = 2, #scanned[2], 2 do checkWaiter(cjson.decode(scanned[2][place])) end
  if scanned[1] ~= "0" then
    redis.call("HSET", K.pool, "reapedWaiters", scanned[1])
    isMore = true
  elseif from ~= "0" then
    redis.call("HDEL", K.pool, "reapedWaiters")
  end
end
checkWaiters()
for _, lease in ipairs(overdue(K.provisional)) do
  local held = redis.call("HGET", K.leases, lease)
  local browser = held and read(held)
  if not browser then
    redis.call("ZREM", K.provisional, lease)
  elseif browser.lease.lost or not controlBeats(browser.lease.control) then
    takeBack(browser)
  else
    -- Its control lives and will say how the reply fared.
    redis.call("ZADD", K.provisional, now + tonumber(A.controlLostMs), lease)
  end
end
redis.call("ZREMRANGEBYSCORE", K.endedLeases, "-inf", now)
for _, control in ipairs(redis.call("HKEYS", K.controls)) do
  local beat = tonumber(redis.call("HGET", K.controls, control))
  if beat > now then redis.call("HSET", K.controls, control, now) end
  if now - beat > 10 * tonumber(A.controlLostMs) then redis.call("HDEL", K.controls, control) end
end
if terms.state == "open" then
  -- A node that is dead has been taken for lost long before, which clears its marks.
  isMore = endVoidMarks(terms.closed, 4 * tonumber(A.nodeLostMs)) or isMore
  for node, mark in pairs(terms.closed) do
    if mark.unregisteredSince then askToRegister(node) end
  end
end
if terms.state == "open" and terms.kind == "pool" then
  budget = budget - dispatch(terms, budget)
  local present = poolFields("templateKey")[1]
  for _, key in ipairs(redis.call("HKEYS", K.templates)) do
    local generation = key:match("^%d+")
    if key ~= present and redis.call("ZCOUNT", K.generationIndex, generation, generation) == 0 then
      redis.call("HDEL", K.templates, key)
    end
  end
end
-- What whoever has discarded it has not come to retire.
if terms.state == "deleted" then retireDeleted() end
if terms.state == "open" and terms.kind == "pool" then retireSuperfluous(false) end
sweepPool()
local reaped = { launch = launches, state = terms.state, isMore = isMore or budget < 1 }
return { "reaped", cjson.encode(reaped), tostring(now), effectsText() }
