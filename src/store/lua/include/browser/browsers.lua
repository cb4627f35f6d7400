-- browsers: their records.

local function read(id)
  local text = redis.call("HGET", K.browsers, id)
  return text and cjson.decode(text)
end
