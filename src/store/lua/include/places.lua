-- places: which browsers a node has, without reading a record: members `node browser`, all of one score, so that their order is their text's.

local function placeOf(browser)
  return browser.node .. " " .. browser.id
end

-- The bounds of a node's places.
local function placesOf(node)
  return "[" .. node .. " ", "(" .. node .. "!"
end

local function idsOn(node)
  local ids = {}
  for _, place in ipairs(redis.call("ZRANGEBYLEX", K.places, placesOf(node))) do table.insert(ids, place:sub(#node + 2)) end
  return ids
end
