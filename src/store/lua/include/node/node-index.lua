-- node-index: which browsers a node has, without reading a record: members `node browser`, all of one score,
-- so that their order is their text's.

local function nodeIndexEntry(browser)
  return browser.node .. " " .. browser.id
end

-- The bounds of a node's places.
local function nodeIndexRange(node)
  return "[" .. node .. " ", "(" .. node .. "!"
end

local function idsOn(node)
  local ids = {}
  for _, place in ipairs(redis.call("ZRANGEBYLEX", K.nodeIndex, nodeIndexRange(node))) do
    table.insert(ids, place:sub(#node + 2))
  end
  return ids
end
