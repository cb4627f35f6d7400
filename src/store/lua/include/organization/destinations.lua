-- destinations: how the record of an export destination is kept.

local function readDestination(id)
  local text = redis.call("HGET", K.destinations, id)
  return text and cjson.decode(text)
end

local function writeDestination(destination)
  local text = cjson.encode(destination)
  redis.call("HSET", K.destinations, destination.id, text)
  return text
end
