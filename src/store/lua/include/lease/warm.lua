-- warm: an acquire, a release and what a node has fenced, at which nothing else is to be done: a browser
-- is lent as it is, or goes on after its lease. Where there is, these answer `other` and have changed
-- nothing, and `acquire`, `release` or `browser-ready` is asked. Redis makes each function of a script anew
-- in each call, and copies each key that it is given.
--- @include base
--- @include events
--- @include ranks
--- @include node/server

-- Whether a browser that is free becomes idle and stays: none is to be retired, and nobody waits for one.
local function staysIdle(state, closed, size)
  return state == "open" and not closed and redis.call("HLEN", K.browsers) <= tonumber(size)
    and redis.call("ZCARD", K.waitQueue) == 0
end

-- Whether the server is known to be the one that has written this pool, so that no epoch begins (node/epoch).
local function isServerKnown(replicationId, checkedAt)
  local sinceMs = now - tonumber(checkedAt or 0)
  if sinceMs >= 0 and sinceMs < serverCheckMs then return true end
  local present = replicationIds()
  if present ~= replicationId then return false end
  redis.call("HSET", K.pool, "serverCheckedAt", now)
  return true
end
