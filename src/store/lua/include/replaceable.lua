-- replaceable: browsers that go as soon as another has taken their place.
--- @include moves
--- @include node/closed-nodes

-- Their ranks in line (moves, closed): on closed nodes they come last of all; idle browsers of closed nodes
-- that are not replaceable come between the two.
local function replaceableScores()
  return { { apart + replaceableScore / 2, "+inf" }, { replaceableScore / 2, apart - replaceableScore / 2 } }
end

-- One that is idle; nil where none is.
local function replaceableIdle()
  for _, scores in ipairs(replaceableScores()) do
    local id = redis.call("ZREVRANGEBYSCORE", K.idle, scores[2], scores[1], "LIMIT", 0, 1)[1]
    if id then return read(id) end
  end
end
