-- failures: launches that fail, or whose browser dies young, put the pool's fill off, exponentially.
--- @include moves
--- @include refunds
--- @include messages

local function countFailure(text, initialMs, maxMs)
  redis.call("HSET", K.pool, "lastError", text)
  -- Launches that were claimed together fail together: that is one failure.
  if tonumber(redis.call("HGET", K.pool, "backoffUntil") or 0) > now then return end
  local failures = redis.call("HINCRBY", K.pool, "failures", 1)
  local wait = math.min(maxMs, initialMs * 2 ^ math.min(failures - 1, 20))
  redis.call("HSET", K.pool, "backoffUntil", now + wait)
end

-- A launch has come to nothing and nothing is left of it.
local function giveUp(browser, text, initialMs, maxMs)
  refund(browser)
  browser.lastError = text
  if browser.waiter then
    local waiting = redis.call("HGET", K.waiting, browser.waiter)
    local waiter = waiting and cjson.decode(waiting)
    redis.call("HDEL", K.waiting, browser.waiter)
    redis.call("HDEL", K.configs, browser.config)
    if waiter then
      if waiter.name then effect("names", { name = waiter.name, owner = waiter.lease }) end
      publish("remuda:control:" .. waiter.control, { kind = "failed", waiter = waiter.id, connection = waiter.connection, error = text })
    end
  else
    countFailure(text, initialMs, maxMs)
  end
  move(browser, "retiring", "launch_failed", now)
  move(browser, "gone", "launch_failed")
end
