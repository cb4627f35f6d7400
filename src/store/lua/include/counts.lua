-- counts: how many browsers there are; sets tell, never counters.

local function liveCount()
  return redis.call("HLEN", K.browsers) - redis.call("ZCARD", K.retiring)
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
