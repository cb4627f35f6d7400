-- counts: how many browsers there are; sets tell, never counters.
--- @include ranks

local function liveCount()
  local over = redis.call("ZCARD", K.retiring) + redis.call("ZCARD", K.discarded)
  return redis.call("HLEN", K.browsers) - over
end

-- How many are to be replaced while they serve. What was discarded (discards) keeps the score that it had in
-- line.
local function replaceableCount()
  local count = redis.call("SCARD", K.replaceable)
  if count == 0 then return 0 end
  for _, scores in ipairs(replaceableScores()) do
    count = count - redis.call("ZCOUNT", K.discarded, scores[1], scores[2])
  end
  return count
end

-- How many of the browsers of a set have a record with this in its text, of which none is decoded.
local function countMarked(set, mark)
  local count, from = 0, 0
  while true do
    local ids = redis.call("ZRANGE", set, from, from + 99)
    if #ids == 0 then return count end
    for _, text in ipairs(redis.call("HMGET", K.browsers, unpack(ids))) do
      if text and text:find(mark, 1, true) then count = count + 1 end
    end
    from = from + #ids
  end
end
