-- launched: the node has proved a browser healthy.
-- KEYS  pool browsers launching idle leased resetting retiring discarded leases waitQueue waiterRecords
--       provisional controls replaceable pendingTombstones endedLeases events nodeIndex generationIndex
--       ageIndex leaseCountIndex nodeStamps answer
-- ARGV  browser claim isolation earlyMs eventsKept controlLostMs provisionalMs keyedMs
-- REPLY launched, stale (the claim is not the record's: the node ends what it has)
--- @include grants
--- @include node/failing-nodes

local first = earlierAnswer()
if first then return first end

local browser = read(A.browser)
if not browser or browser.state ~= "launching" or browser.claim ~= A.claim then return plain("stale") end
browser.paid, browser.readyAt, browser.isolation = nil, now, A.isolation
if not browser.waiter then
  local nodes = failingNodes()
  local node = nodes[browser.node]
  if node and now - (node.diedAt or 0) > tonumber(A.earlyMs) then
    nodes[browser.node] = nil
    keepFailing(nodes)
  end
  local early = tonumber(redis.call("HGET", K.pool, "earlyDeathAt") or "0")
  if now - early > tonumber(A.earlyMs) then
    redis.call("HSET", K.pool, "failures", 0, "backoffUntil", 0, "lastError", "")
  end
  -- Launches of an earlier generation were discarded (discards).
  if browser.generation < tonumber(poolFields("launchesFrom")[1] or 0) then
    retire(browser, "discarded", true)
  else
    settle(browser, "launched", poolTerms())
  end
  return finish("launched")
end

-- An on-demand browser goes straight to the caller it was launched for.
local text = redis.call("HGET", K.waiterRecords, browser.waiter)
local waiter = text and cjson.decode(text)
browser.waiter = nil
move(browser, "idle", "launched")
if waiter and isThere(waiter) then
  grantTo(browser, waiter, { timeoutSeconds = waiter.timeoutSeconds })
elseif waiter and waiter.key then
  -- The caller has gone: the browser is kept for the retry under its key.
  removeWaiter(waiter)
  recordLease(browser, waiter, { timeoutSeconds = waiter.timeoutSeconds })
  browser.lease.lost = true
  write(browser)
  redis.call("ZADD", K.provisional, now + tonumber(A.keyedMs), waiter.lease)
else
  if waiter then giveUpPlace(waiter) end
  retire(browser, "unwanted")
end
return finish("launched")
