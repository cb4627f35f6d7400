-- endings: how leases and browsers end.
--- @include moves
--- @include claims
--- @include refunds
--- @include messages

local retireMs = 10000
-- Longer than anybody retries a release.
local endedLeaseMs = 120000
-- Set where the answer to this request is kept under the lease that it ends, for as long as the lease is
-- remembered: a repeat is answered by that.
local isEndAnswered = false
local fenceMs = 3000
local resetMs = 15000
-- A tombstone may have 1024 bytes; the rest is kept free for the last count of what was used, which still
-- comes.
local maxTombstoneBytes = 900

local function writeTombstone(browser, why)
  local lease, launch = browser.lease, browser.facts and cjson.decode(browser.facts) or {}
  local tombstone = {
    id = browser.id, lease = lease.id, deletedAt = now, createdAt = browser.createdAt, reason = why,
    headless = launch.headless, stealth = launch.stealth, kiosk_mode = launch.kiosk_mode,
    memory = launch.memory, timeoutSeconds = lease.timeoutSeconds, name = lease.name,
    poolId = launch.poolId, poolName = redis.call("HGET", K.pool, "name") or nil,
    usage = lease.usage, profileId = lease.profile and cjson.decode(lease.profile).id or launch.profileId,
  }
  tombstone.tags = lease.tags
  if #cjson.encode(tombstone) > maxTombstoneBytes then tombstone.tags = nil end
  redis.call("HSET", K.pendingTombstones, browser.id, cjson.encode(tombstone))
  addEffect("tombstones", browser.id)
  -- The tombstone is kept until its node has ended the browser, and with it the count of what it used.
  browser.tombstone = tombstone
end

-- Takes the lease out of the browser's record; the move that follows writes it.
local function dropLease(browser, why)
  local lease = browser.lease
  redis.call("HDEL", K.leases, lease.id)
  redis.call("ZREM", K.provisional, lease.id)
  browser.lastLease, browser.lastLeaseEndedAt, browser.lastWhy = lease.id, now, why
  if why ~= "undone" then browser.served = browser.served + 1 end
  browser.lease = nil
  local heldMs = now - lease.grantedAt
  local ended = {
    lease = lease.id, node = browser.node, why = why, hadClient = lease.registrations > 0, heldMs = heldMs,
  }
  -- What it has captured is found by these, once the record no longer has the lease.
  if lease.telemetry or browser.facts and browser.facts:find('"captures":true', 1, true) then
    ended.captured = { config = browser.config, telemetry = lease.telemetry }
  end
  addEffect("ended", ended)
  if lease.keyUntil or not isEndAnswered then
    redis.call("ZADD", K.endedLeases, math.max(lease.keyUntil or 0, now + endedLeaseMs), lease.id)
  end
  if lease.name then addEffect("names", { name = lease.name, owner = lease.id }) end
  return lease
end

-- Tells the browser's node that a lease is over; the caller sees to it that the node gets the message.
local function cut(browser, message)
  publish("remuda:node:" .. browser.node, message)
  addEffect("cuts", { node = browser.node, message = message })
end

-- Decides once that a browser is over. Its lease, if any, ends with it. `credit` pays for its replacement at
-- once.
local function retire(browser, why, credit)
  if browser.state == "launching" then refund(browser) end
  if browser.lease then
    writeTombstone(browser, why)
    local lease = dropLease(browser, why)
    cut(browser, { kind = "cut", browser = browser.id, lease = lease.id, why = why })
  end
  redis.call("SREM", K.replaceable, browser.id)
  if credit then addCredit(1) end
  claim(browser)
  browser.why = why
  move(browser, "retiring", why, now + retireMs)
  addEffect("retire", { browser = browser.id, node = browser.node, claim = browser.claim })
end

-- Ends the lease and sends the browser to its node: to be fenced, and reset where `mode` says so.
local function fence(browser, why, mode)
  local lease = dropLease(browser, why)
  claim(browser)
  browser.mode, browser.fence = mode, lease.id
  move(browser, "resetting", why, now + (mode == "state" and resetMs or fenceMs))
  cut(browser, { kind = "fence", browser = browser.id, lease = lease.id, claim = browser.claim, mode = mode })
  if mode == "state" then
    addEffect("reset", { browser = browser.id, node = browser.node, claim = browser.claim })
  end
end
