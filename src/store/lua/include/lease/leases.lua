-- leases: what a grant writes, and the end of a lease whose browser goes on. `move` stands before this: that
-- of all moves (moves), or of a command which makes few.
--- @include changes
--- @include claims
--- @include messages

-- Longer than anybody retries a release.
local endedLeaseMs = 120000
-- Set where the answer to this request is kept under the lease that it ends, for as long as the lease is
-- remembered: a repeat is answered by that.
local isEndAnswered = false
local fenceMs = 3000
local resetMs = 15000

-- Notes a beat, unless there was one just now: a write costs more than a look.
local function beatOf(control)
  local beat = redis.call("HGET", K.controls, control)
  if not beat or now - tonumber(beat) > tonumber(A.controlLostMs) / 10 then
    redis.call("HSET", K.controls, control, now)
  end
end

-- A provisional lease: final once its control confirms the flushed reply or a client opens the URL. Gives the
-- record's text.
local function recordLease(browser, waiter, terms)
  browser.lease = {
    id = waiter.lease, grantedAt = now, timeoutSeconds = terms.timeoutSeconds, registrations = 0,
    control = waiter.control,
    connection = waiter.connection, name = waiter.name, tags = waiter.tags, startUrl = waiter.startUrl,
    key = waiter.key, keyUntil = waiter.keyUntil, pool = terms.name, holder = waiter.holder,
    telemetry = waiter.telemetry, trace = waiter.trace,
    protectFilled = waiter.protectFilled,
  }
  local text = move(browser, "leased", "granted", browser.createdAt)
  redis.call("HSET", K.leases, waiter.lease, browser.id)
  redis.call("ZADD", K.provisional, now + tonumber(A.provisionalMs), waiter.lease)
  if waiter.startUrl or waiter.telemetry then
    publish("remuda:node:" .. browser.node, {
      kind = "start", browser = browser.id, lease = waiter.lease, url = waiter.startUrl,
      telemetry = waiter.telemetry, trace = waiter.trace,
    })
  end
  return text
end

-- The answer to a request that was granted this lease before: acquire-warm keeps no other.
local function lentBefore(lease)
  local held = redis.call("HGET", K.leases, lease)
  if not held then return nil end
  local text = redis.call("HGET", K.browsers, held)
  return { "granted", text, text:match('"grantedAt":(%d+)'), "" }
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
    ended.captured = { templateKey = browser.templateKey, telemetry = lease.telemetry, trace = lease.trace }
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
