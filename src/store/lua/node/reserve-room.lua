-- reserve-room: a place on a node for a browser to be; an empty node admits one of any class.
-- KEYS  room rest trial
-- ARGV  browser bytes mostBytes mostBrowsers graceMs isTrial restMs
-- REPLY reserved, full
-- `isTrial`: the node fails launches; it has no room while it rests, and then for one until that has come to
-- something or has given back its place. The map holds a set of browsers with their bytes, never a counter:
-- giving back twice is harmless.
--- @include base

local sum, count = 0, 0
local places = redis.call("HGETALL", K.room)
for i = 1, #places, 2 do
  if places[i] ~= A.browser then
    sum, count = sum + tonumber(string.match(places[i + 1], "^%d+")), count + 1
  end
end
local fits = count == 0
  or count < tonumber(A.mostBrowsers) and sum + tonumber(A.bytes) <= tonumber(A.mostBytes)
if not fits then return plain("full") end
if A.isTrial == "1" then
  -- One that lasts longer than any was set before the clock went back.
  for _, key in ipairs({ K.rest, K.trial }) do
    if redis.call("PTTL", key) > math.max(tonumber(A.graceMs), tonumber(A.restMs)) then
      redis.call("DEL", key)
    end
  end
  if redis.call("EXISTS", K.rest) == 1 then return plain("full") end
  -- The node may never hear of a trial without a place: its launch was not claimed, or was called off.
  local other = redis.call("GET", K.trial)
  if other and other ~= A.browser and redis.call("HEXISTS", K.room, other) == 1 then return plain("full") end
  redis.call("SET", K.trial, A.browser, "PX", A.graceMs)
end
redis.call("HSET", K.room, A.browser, A.bytes .. " " .. string.format("%.0f", now + tonumber(A.graceMs)))
return plain("reserved")
