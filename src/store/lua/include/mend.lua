-- mend: the index is made anew from the records where somebody has moved browsers who knows of none: another release.
--- @include index

-- How many moves there ever were, as the stream counts them; nil before Redis 7.0.
local function movesEver()
  if redis.call("EXISTS", K.events) == 0 then return 0 end
  local info = redis.call("XINFO", "STREAM", K.events)
  for place = 1, #info, 2 do
    if info[place] == "entries-added" then return info[place + 1] end
  end
end

local function isWhole()
  local ever = movesEver()
  if not ever then return redis.call("ZCARD", K.places) == redis.call("HLEN", K.browsers) end
  return tonumber(redis.call("HGET", K.changed, moveCount) or 0) == ever
end

local function mend()
  if isWhole() then return end
  redis.call("DEL", K.places, K.generations, K.ages, K.served, K.changed)
  for _, text in ipairs(redis.call("HVALS", K.browsers)) do
    local browser = cjson.decode(text)
    redis.call("ZADD", K.places, 0, placeOf(browser))
    if browser.state ~= "retiring" then intoService(browser) end
    stamp(browser.node)
  end
  redis.call("HSET", K.changed, moveCount, movesEver() or 0)
end
