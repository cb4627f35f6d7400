-- worn: browsers that go as soon as another has taken their place.
--- @include moves
--- @include closed

-- Where they stand in line (moves, closed): on closed nodes last of all; between the two stand those of closed nodes that are not worn.
local wornScores = { { apart + ofWorn / 2, "+inf" }, { ofWorn / 2, apart - ofWorn / 2 } }

-- One that is idle; nil where none is.
local function wornIdle()
  for _, scores in ipairs(wornScores) do
    local id = redis.call("ZREVRANGEBYSCORE", K.idle, scores[2], scores[1], "LIMIT", 0, 1)[1]
    if id then return read(id) end
  end
end
