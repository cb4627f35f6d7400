-- browser-ready-warm: browsers that their node has fenced are idle again, where a browser-ready has nothing
-- else to do (warm).
-- KEYS  pool browsers idle resetting discarded waitQueue events nodeStamps answer
-- ARGV  freed eventsKept
-- REPLY freed (as browser-ready gives them), other
-- Arguments and `answer` are those of browser-ready.
--- @include changes
--- @include lease/warm

if redis.call("EXISTS", K.answer) == 1 then return plain("other") end

local state, size, network, closed, replicationId, checkedAt =
  unpack(redis.call("HMGET", K.pool, "state", "size", "networkGeneration", "closed", "replicationId",
    "serverCheckedAt"))
-- What stands by, and sessions on demand, have no size.
if not size then return plain("other") end
-- One that is named twice is freed once.
local freed, outcomes, seen = {}, {}, {}
for place, pair in ipairs(cjson.decode(A.freed)) do
  local browser = not seen[pair[1]] and read(pair[1])
  outcomes[place] = browser and browser.state == "resetting" and browser.claim == pair[2] or false
  if outcomes[place] then
    seen[pair[1]] = true
    if browser.networkGeneration ~= tonumber(network) then return plain("other") end
    freed[#freed + 1] = browser
  end
end
if not staysIdle(state, closed, size) then return plain("other") end
if not isServerKnown(replicationId, checkedAt) then return plain("other") end

for _, browser in ipairs(freed) do
  if redis.call("ZREM", K.resetting, browser.id) == 0 then redis.call("ZREM", K.discarded, browser.id) end
  event(browser, "resetting", "idle", "fenced")
  browser.claim, browser.mode, browser.fence = nil, nil, nil
  enter(browser, "idle", K.idle, idleScore(browser))
end
return finish("freed", cjson.encode(outcomes))
