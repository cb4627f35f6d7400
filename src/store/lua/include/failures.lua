-- failures: launches that fail, or whose browser dies young, put the pool off that node; where nodes fail one
-- after the other, off all.
--- @include moves
--- @include node/failing-nodes
--- @include refunds
--- @include messages

local function countFailure(browser, text, initialMs, maxMs)
  local function backoff(failures) return math.min(maxMs, initialMs * 2 ^ math.min(failures - 1, 20)) end
  redis.call("HSET", K.pool, "lastError", browser.node .. ": " .. text)
  local nodes = failingNodes()
  local node = nodes[browser.node] or { failures = 0, restsUntil = 0 }
  -- Launches that were claimed together fail together: that is one failure.
  if node.restsUntil > now then return end
  local isTrial = node.failures > 0 and not browser.readyAt
  node.failures, node.failedAt, node.error, node.trial = node.failures + 1, now, text, nil
  node.restsUntil = now + backoff(node.failures)
  if browser.readyAt then node.diedAt = now end
  nodes[browser.node] = node
  keepFailing(nodes)
  -- Another trial of a node that is known to fail says nothing of others: those are tried at once.
  if isTrial or tonumber(redis.call("HGET", K.pool, "backoffUntil") or 0) > now then return end
  -- The first may be its node's fault: it is tried elsewhere at once.
  local failures = redis.call("HINCRBY", K.pool, "failures", 1)
  if failures > 1 then redis.call("HSET", K.pool, "backoffUntil", now + backoff(failures - 1)) end
end

-- A launch has come to nothing and nothing is left of it. Whoever waits for it is told, and may have it tried
-- on another node; where the message is lost, it is found with the waiter.
local function giveUp(browser, text, initialMs, maxMs)
  refund(browser)
  browser.lastError = text
  if browser.waiter then
    local waiting = redis.call("HGET", K.waiterRecords, browser.waiter)
    local waiter = waiting and cjson.decode(waiting)
    redis.call("HDEL", K.templates, browser.templateKey)
    if waiter then
      waiter.unplaced, waiter.unplacedAt = true, now
      waiter.failure = { node = browser.node, error = text, browser = browser.id }
      redis.call("HSET", K.waiterRecords, waiter.id, cjson.encode(waiter))
      publish("remuda:control:" .. waiter.control, {
        kind = "failed", waiter = waiter.id, connection = waiter.connection,
        node = browser.node, error = text, browser = browser.id,
      })
    end
  else
    if browser.standby then redis.call("HDEL", K.templates, browser.templateKey) end
    countFailure(browser, text, initialMs, maxMs)
  end
  move(browser, "retiring", "launch_failed", now)
  move(browser, "gone", "launch_failed")
end
