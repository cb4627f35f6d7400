-- reserve-room: a place on a node for a browser to be; an empty node admits one of any class.
-- KEYS  room rest trial
-- ARGV  browser bytes mostBytes mostBrowsers graceMs isTrial restMs standsBy
-- REPLY reserved (JSON list of [browser, bytes]: those that stood by and have to go; empty for none), full
-- `isTrial`: the node fails launches; it has no room while it rests, and then for one until that has come to
-- something or has given back its place. The map holds a set of browsers with their bytes, never a counter:
-- giving back twice is harmless. `standsBy`: it is to stand by, and has room only beside all others;
-- everybody else's place goes before those of browsers that stand by, which keep theirs as far as there is
-- room.
--- @include base

local sum, count, standing = 0, 0, {}
local places = redis.call("HGETALL", K.room)
for i = 1, #places, 2 do
  local bytes = tonumber(string.match(places[i + 1], "^%d+"))
  local isOther = places[i] ~= A.browser
  if isOther and A.standsBy == "0" and places[i + 1]:find(" standby", 1, true) then
    table.insert(standing, { places[i], bytes })
  elseif isOther then
    sum, count = sum + bytes, count + 1
  end
end
local function hasRoom(bytes)
  return count < tonumber(A.mostBrowsers) and sum + bytes <= tonumber(A.mostBytes)
end
if count > 0 and not hasRoom(tonumber(A.bytes)) then return plain("full") end
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
local deadline = string.format("%.0f", now + tonumber(A.graceMs))
redis.call("HSET", K.room, A.browser, A.bytes .. " " .. deadline .. (A.standsBy == "1" and " standby" or ""))
sum, count = sum + tonumber(A.bytes), count + 1
local yielding = {}
for _, place in ipairs(standing) do
  if hasRoom(place[2]) then
    sum, count = sum + place[2], count + 1
  else
    redis.call("HDEL", K.room, place[1])
    table.insert(yielding, place)
  end
end
return plain("reserved", #yielding > 0 and cjson.encode(yielding) or "")
