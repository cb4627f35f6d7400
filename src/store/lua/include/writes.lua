-- writes: a browser's record is written, and its node can see that it was.
--- @include base
--- @include browsers

-- Stands among the nodes; none can be called so.
local moveCount = "moves made"

-- A new value each time, also after a failover that lost the last ones: whoever has seen this one has seen all there is.
local function stamp(node)
  redis.call("HSET", K.changed, node, clock[1] .. "." .. clock[2])
end

local function write(browser)
  local text = cjson.encode(browser)
  redis.call("HSET", K.browsers, browser.id, text)
  stamp(browser.node)
  return text
end
