-- pool: fields of the pool's record.
--- @include base

local function poolFields(...)
  return redis.call("HMGET", K.pool, ...)
end

-- What decides over a browser that is free, in one read.
local function poolTerms()
  local id, kind, name, state, unsupported, reset, size, timeoutSeconds, network, closed, replicationId, run,
    serverCheckedAt, epochSequence =
    unpack(poolFields(
      "id", "kind", "name", "state", "unsupported", "reset", "size", "timeoutSeconds",
      "networkGeneration", "closed", "replicationId", "run", "serverCheckedAt", "epochSequence"
    ))
  return {
    id = id, kind = kind, name = name or nil, state = state, unsupported = unsupported, reset = reset,
    size = tonumber(size), timeoutSeconds = tonumber(timeoutSeconds), network = tonumber(network),
    -- {silentUntil?, drainsUntil?, unregisteredSince?, mayHaveLost?} by node.
    closed = closed and cjson.decode(closed) or {},
    -- The server by which this was written last, as far as that was looked at.
    replicationId = replicationId or nil, run = run or nil,
    serverCheckedAt = tonumber(serverCheckedAt or 0),
    -- The number of the last that stood in line when the epoch began; nil where it is the pool's first.
    epochSequence = tonumber(epochSequence),
  }
end

local function nextNumber(name)
  return redis.call("HINCRBY", K.pool, name, 1)
end

-- Greater than the last, and also a time: after a failover that lost the last ones none is given twice, for
-- others have acted on those.
local function nextInstant(name)
  local number = math.max(now, tonumber(redis.call("HGET", K.pool, name) or 0) + 1)
  redis.call("HSET", K.pool, name, string.format("%.0f", number))
  return number
end
