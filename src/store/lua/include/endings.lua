-- endings: how leases and browsers end.
--- @include moves
--- @include lease/leases
--- @include refunds

local retireMs = 10000
-- A tombstone with tags may have 1024 bytes; the rest is kept free for the last count of what was used, which
-- still comes. Tags go where they do not fit; what a read of it is judged by never goes.
local maxTombstoneBytes = 900

local function writeTombstone(browser, why)
  local lease, launch = browser.lease, browser.facts and cjson.decode(browser.facts) or {}
  local tombstone = {
    id = browser.id, lease = lease.id, deletedAt = now, createdAt = browser.createdAt, reason = why,
    headless = launch.headless, stealth = launch.stealth, kiosk_mode = launch.kiosk_mode,
    memory = launch.memory, timeoutSeconds = lease.timeoutSeconds, name = lease.name,
    poolId = launch.poolId, poolName = redis.call("HGET", K.pool, "name") or nil,
    usage = lease.usage, profileId = lease.profile and cjson.decode(lease.profile).id or launch.profileId,
    vaultIds = launch.vaultIds,
  }
  tombstone.tags = lease.tags
  if #cjson.encode(tombstone) > maxTombstoneBytes then tombstone.tags = nil end
  redis.call("HSET", K.pendingTombstones, browser.id, cjson.encode(tombstone))
  addEffect("tombstones", browser.id)
  -- The tombstone is kept until its node has ended the browser, and with it the count of what it used.
  browser.tombstone = tombstone
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
