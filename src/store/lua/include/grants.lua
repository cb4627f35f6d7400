-- grants: who gets a browser that is free.
--- @include moves
--- @include node/closed-nodes
--- @include node/epoch
--- @include endings
--- @include ranks
--- @include counts
--- @include messages

local function controlBeats(control)
  local beat = redis.call("HGET", K.controls, control)
  return beat and now - tonumber(beat) <= tonumber(A.controlLostMs)
end

-- Whether somebody is there to be answered.
local function isThere(waiter)
  return not waiter.detachedAt and controlBeats(waiter.control)
end

-- The first waiter that may be offered a browser.
local function nextWaiter()
  local from = 0
  while true do
    local ids = redis.call("ZRANGE", K.waitQueue, from, from + 31)
    if #ids == 0 then return nil end
    for _, id in ipairs(ids) do
      local text = redis.call("HGET", K.waiterRecords, id)
      local waiter = text and cjson.decode(text)
      if waiter and isThere(waiter) then return waiter end
    end
    from = from + #ids
  end
end

local function removeWaiter(waiter)
  redis.call("ZREM", K.waitQueue, waiter.id)
  redis.call("HDEL", K.waiterRecords, waiter.id)
end

-- The waiter will never be served: its name is given back.
local function giveUpPlace(waiter)
  removeWaiter(waiter)
  if waiter.name then addEffect("names", { name = waiter.name, owner = waiter.lease }) end
end

local function grantTo(browser, waiter, terms)
  removeWaiter(waiter)
  local text = recordLease(browser, waiter, terms)
  publish("remuda:control:" .. waiter.control,
    { kind = "granted", waiter = waiter.id, connection = waiter.connection, browser = text, at = now })
end

-- Chooses the browser that has to go so that no more live than `size`, and the replacements asked for, allow.
local function surplusOf(browser, size)
  if redis.call("HLEN", K.browsers) <= size then return nil end
  local live = liveCount()
  if live <= size then return nil end
  if browser.replaceable then return browser, "recycled" end
  local replaceable = replaceableIdle()
  if replaceable then return replaceable, "recycled" end
  if live > size + replaceableCount() then return browser, "above_size" end
  return nil
end

-- A browser is free: it is retired, or goes to the first waiter, or becomes idle.
local function settle(browser, why, terms)
  if terms.state ~= "open" then return retire(browser, "pool_deleted") end
  if browser.networkGeneration ~= terms.network then return retire(browser, "stale_network", true) end
  beginEpoch(terms)
  local surplus, reason
  -- What stands by for sessions on demand has no pool whose size it could exceed.
  if terms.size then surplus, reason = surplusOf(browser, terms.size) end
  if surplus then retire(surplus, reason) end
  if surplus == browser then return end
  local isLendable = mayLend(browser, terms)
  -- Its replacement was paid for when its node was marked, or is now.
  if isDraining(browser, terms) and not isLendable then
    return retire(browser, "drained", not browser.replaceable)
  end
  move(browser, "idle", why)
  if terms.closed[browser.node] then rankLast(browser) end
  local waiter = isLendable and nextWaiter()
  if waiter then grantTo(browser, waiter, terms) end
end

-- Takes the next idle browser that may be lent, and retires those with stale network rules on the way.
-- Browsers of closed nodes come last, but for those that stood in line when an epoch began (epoch), and among
-- them one that may be lent can come after others that may not.
local function takeIdle(terms)
  beginEpoch(terms)
  local passed, mayClosed = 0, nil
  while true do
    local id = redis.call("ZRANGE", K.idle, passed, passed)[1]
    if not id then return nil end
    local browser = read(id)
    if browser.networkGeneration ~= terms.network then
      retire(browser, "stale_network", true)
    elseif mayLend(browser, terms) then
      return browser
    else
      local earlier = countEarlier(browser, terms)
      if earlier > passed then
        passed = earlier
      else
        if mayClosed == nil then mayClosed = mayAnyClosedLend(terms) end
        if not mayClosed then return nil end
        passed = passed + 1
      end
    end
  end
end

-- Hands idle browsers to waiters that were left over by a lost message or a pause of their control: to all,
-- or to so many. Gives to how many.
local function dispatch(terms, most)
  local served = 0
  while not most or served < most do
    local waiter = nextWaiter()
    local browser = waiter and takeIdle(terms)
    if not browser then return served end
    grantTo(browser, waiter, terms)
    served = served + 1
  end
  return served
end
