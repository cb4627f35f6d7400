-- index: browsers by node, generation, age and leases served, so that nobody has to read every record to find
-- some. A retiring one has a place only.
--- @include write-record
--- @include node/node-index

local function addToIndexes(browser)
  redis.call("ZADD", K.generationIndex, browser.generation, browser.id)
  if browser.recycleAt and not browser.replaceable then
    redis.call("ZADD", K.ageIndex, browser.recycleAt, browser.id)
  end
  if browser.served > 0 and not browser.replaceable then
    redis.call("ZADD", K.leaseCountIndex, browser.served, browser.id)
  end
end

local function removeFromIndexes(browser)
  redis.call("ZREM", K.generationIndex, browser.id)
  redis.call("ZREM", K.ageIndex, browser.id)
  redis.call("ZREM", K.leaseCountIndex, browser.id)
end

-- The record of a browser that is new.
local function addBrowser(browser)
  redis.call("ZADD", K.nodeIndex, 0, nodeIndexEntry(browser))
  addToIndexes(browser)
  return write(browser)
end

local function forgetBrowser(browser)
  redis.call("HDEL", K.browsers, browser.id)
  redis.call("ZREM", K.nodeIndex, nodeIndexEntry(browser))
  stamp(browser.node)
  if redis.call("ZLEXCOUNT", K.nodeIndex, nodeIndexRange(browser.node)) == 0 then
    redis.call("HDEL", K.nodeStamps, browser.node)
  end
end
