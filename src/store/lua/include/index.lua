-- index: browsers by node, generation, age and leases served, so that nobody has to read every record to find some. A retiring one has a place only.
--- @include writes
--- @include places

local function intoService(browser)
  redis.call("ZADD", K.generations, browser.generation, browser.id)
  if browser.recycleAt and not browser.worn then redis.call("ZADD", K.ages, browser.recycleAt, browser.id) end
  if browser.served > 0 and not browser.worn then redis.call("ZADD", K.served, browser.served, browser.id) end
end

local function outOfService(browser)
  redis.call("ZREM", K.generations, browser.id)
  redis.call("ZREM", K.ages, browser.id)
  redis.call("ZREM", K.served, browser.id)
end

-- The record of a browser that is new.
local function enter(browser)
  redis.call("ZADD", K.places, 0, placeOf(browser))
  intoService(browser)
  return write(browser)
end

local function leave(browser)
  redis.call("HDEL", K.browsers, browser.id)
  redis.call("ZREM", K.places, placeOf(browser))
  stamp(browser.node)
  if redis.call("ZLEXCOUNT", K.places, placesOf(browser.node)) == 0 then redis.call("HDEL", K.changed, browser.node) end
end
