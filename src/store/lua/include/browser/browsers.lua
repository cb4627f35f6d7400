-- browsers: their records.

local function read(id)
  local text = redis.call("HGET", K.browsers, id)
  return text and cjson.decode(text)
end

-- The texts of many records, in their order; false where there is none.
local function textsOf(ids)
  local texts, most = {}, 1000
  for from = 1, #ids, most do
    local batch = redis.call("HMGET", K.browsers, unpack(ids, from, math.min(from + most - 1, #ids)))
    for _, text in ipairs(batch) do table.insert(texts, text) end
  end
  return texts
end

-- To decode a record takes longer than to look at its text.
local function isIdle(text)
  return text:find('"state":"idle"', 1, true) ~= nil
end
