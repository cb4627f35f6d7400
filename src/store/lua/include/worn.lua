-- worn: browsers that go as soon as another has taken their place.
--- @include moves

-- One that is idle; nil where none is.
local function wornIdle()
  local id = redis.call("ZREVRANGEBYSCORE", K.idle, "+inf", ofWorn / 2, "LIMIT", 0, 1)[1]
  return id and read(id)
end
