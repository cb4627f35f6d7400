-- pool: fields of the pool's record.

local function poolFields(...)
  return redis.call("HMGET", K.pool, ...)
end

-- What decides over a browser that is free, in one read.
local function poolTerms()
  local id, kind, name, state, unsupported, reset, size, timeoutSeconds, network, closed =
    unpack(poolFields("id", "kind", "name", "state", "unsupported", "reset", "size", "timeoutSeconds", "networkGeneration", "closed"))
  return {
    id = id, kind = kind, name = name or nil, state = state, unsupported = unsupported, reset = reset,
    size = tonumber(size), timeoutSeconds = tonumber(timeoutSeconds), network = tonumber(network),
    -- By node: {silentUntil?, drainsUntil?}.
    closed = closed and cjson.decode(closed) or {},
  }
end

local function nextNumber(name)
  return redis.call("HINCRBY", K.pool, name, 1)
end
