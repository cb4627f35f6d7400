-- register-node: a node tells which browsers it has, and which leases clients have opened on them, since
-- another epoch has begun: these go on, whatever the record says, and what the node has is lent again.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps
-- ARGV  node present opened eventsKept controlLostMs provisionalMs
-- REPLY registered (JSON {resumed: [lease], void: [lease]}), known (it has not to)
-- `present` is a JSON list of browsers: records that name others end as `missing`. `opened` is a JSON list of
-- browsers' records as the node has read them last, each with such a lease. A lease that nobody has opened is
-- void where Redis may have lost writes: it may have been released, and its browser lent to another. Not
-- remembered for repeats: a second time the node is known.
--- @include grants

local terms = poolTerms()
if terms.state ~= "open" then return plain("known") end
beginEpoch(terms, true)
local mark = terms.closed[A.node]
local since = mark and mark.unregisteredSince
if not since then return plain("known") end

-- A lease of the epoch before; the server that has granted it may have had a clock ahead of this one's.
local function isEarlier(lease) return lease.grantedAt < since or lease.grantedAt > now end

-- Brings the browser to where a lease can be recorded.
local function makeIdle(browser)
  if browser.lease then
    dropLease(browser, "unconfirmed")
    if not browser.replaceable then redis.call("ZADD", K.leaseCountIndex, browser.served, browser.id) end
  end
  if browser.state == "launching" then
    browser.waiter, browser.paid, browser.readyAt = nil, nil, now
  end
  if browser.state ~= "idle" then move(browser, "idle", "registered") end
end

-- All waiters by the lease that each is to have, read once: many leases may have to be resumed.
local waiterOf
local function readWaiters()
  waiterOf = {}
  for _, text in ipairs(redis.call("HVALS", K.waiterRecords)) do
    waiterOf[text:match('"lease":"([^"]*)"')] = text
  end
end

-- Whoever was served before is in line again by the record.
local function forgetWaiter(lease)
  if not waiterOf then readWaiters() end
  if waiterOf[lease] then removeWaiter(cjson.decode(waiterOf[lease])) end
end

-- The record is older than what the node has seen, unless it knows the lease's end, or has given the lease to
-- its waiter once more. The name may be another's by now.
local function resume(known)
  local browser, lease = read(known.id), known.lease
  lease.registrations = math.max(1, lease.registrations)
  if not browser or browser.node ~= A.node or browser.state == "retiring" then return false end
  if browser.lastLease == lease.id or redis.call("ZSCORE", K.endedLeases, lease.id) then return false end
  local held = browser.lease
  if held and held.id == lease.id then
    held.registrations = math.max(held.registrations, lease.registrations)
    redis.call("ZREM", K.provisional, lease.id)
    write(browser)
    return true
  end
  if held and not isEarlier(held) or redis.call("HEXISTS", K.leases, lease.id) == 1 then return false end
  makeIdle(browser)
  forgetWaiter(lease.id)
  lease.name, lease.lost, browser.lease, browser.uploaded = nil, nil, lease, known.uploaded
  -- One that stood by is a session with what was asked for.
  browser.standby, browser.facts = nil, known.facts
  move(browser, "leased", "registered", browser.createdAt)
  redis.call("HSET", K.leases, lease.id, browser.id)
  return true
end

local resumed, void = {}, {}
for _, known in ipairs(cjson.decode(A.opened)) do
  if resume(known) then table.insert(resumed, known.lease.id) end
end
local present = {}
for _, id in ipairs(cjson.decode(A.present)) do present[id] = true end
-- Launching and retiring ones have jobs, which come again.
local function isMissing(browser)
  return not present[browser.id] and browser.state ~= "launching" and browser.state ~= "retiring"
end
local function isVoid(lease)
  return mark.mayHaveLost and lease and lease.registrations == 0 and isEarlier(lease)
end
local ids = idsOn(A.node)
for place, text in ipairs(textsOf(ids)) do
  -- Most are there and idle.
  local browser = not (present[ids[place]] and isIdle(text)) and cjson.decode(text)
  if browser and isMissing(browser) then
    retire(browser, "missing", terms.kind == "pool")
  elseif browser and isVoid(browser.lease) then
    table.insert(void, browser.lease.id)
    retire(browser, "unconfirmed", terms.kind == "pool")
  end
end

mark.unregisteredSince, mark.mayHaveLost = nil, nil
terms.closed[A.node] = next(mark) and mark or nil
keepClosed(terms.closed)
rankIdleOf(A.node, terms.closed)
if terms.kind == "pool" then dispatch(terms) end
return { "registered", cjson.encode({ resumed = resumed, void = void }), tostring(now), effectsText() }
