-- events: every move of a browser or lease, in the script that makes it, on a capped stream.
--- @include write-record

local function event(browser, from, to, why)
  local lease = browser.lease and browser.lease.id or from == "leased" and browser.lastLease or ""
  -- A release that keeps no index notes no moves: that is how its own are found out (rebuild-index). Whoever
  -- makes a move writes the record next.
  movedAs = redis.call("XADD", K.events, "MAXLEN", "~", A.eventsKept, "*",
    "browser", browser.id, "lease", lease, "from", from, "to", to, "why", why)
end

-- The rest of a move: the browser stands in its new state, and its record is written. Gives the text of that.
local function enter(browser, to, key, score)
  browser.state, browser.since, browser.tries = to, now, nil
  redis.call("ZADD", key, score, browser.id)
  return write(browser)
end
