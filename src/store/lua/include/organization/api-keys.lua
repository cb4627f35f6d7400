-- api-keys: how the record of an API key is kept, and what a repeat under an idempotency key is told.

local function readKey(id)
  local text = redis.call("HGET", K.apiKeys, id)
  return text and cjson.decode(text)
end

local function writeKey(key)
  local text = cjson.encode(key)
  redis.call("HSET", K.apiKeys, key.id, text)
  return text
end

-- Whether a key lets nobody in any more: it was deleted, has expired, is not there, or is of a project that
-- is not active.
local function hasEnded(id)
  local key = readKey(id)
  if not key or key.deletedAt or key.expiresAt and now >= key.expiresAt then return true end
  local project = key.projectId or "default"
  return project ~= "default" and redis.call("SISMEMBER", K.activeProjects, project) == 0
end

-- Lets whoever shows this key be found by its digest, until it expires.
local function indexKey(key)
  local expires = key.expiresAt and string.format(" %.0f", key.expiresAt) or ""
  redis.call("HSET", K.keyDigests, key.digest, key.id .. expires)
  if key.expiresAt then redis.call("ZADD", K.keyEnds, string.format("%.0f", key.expiresAt), key.id) end
end

-- Puts a key among those of everybody (`*`) and of its project, or takes it out: as `living` at the
-- microsecond at which it was made, as `deleted` at that of its end. The time has 16 digits, so that texts
-- are in its order.
local function orderKey(key, state, at, isListed)
  for _, scope in ipairs({ "*", key.projectId }) do
    local member = scope .. " " .. state .. " " .. at .. " " .. key.id
    if isListed then redis.call("ZADD", K.keyOrder, 0, member) else redis.call("ZREM", K.keyOrder, member) end
  end
end

local function timeIn(set, id)
  return string.format("%.0f", tonumber(redis.call("ZSCORE", set, id)))
end

local function addKey(key)
  key.createdAt = now
  key.expiresAt = key.lifetimeDays and now + key.lifetimeDays * 86400000 or nil
  indexKey(key)
  -- The score is in microseconds, so that two that came in one millisecond keep their order.
  local at = microseconds()
  redis.call("ZADD", K.livingKeys, at, key.id)
  orderKey(key, "living", at, true)
  return writeKey(key)
end

-- What the first request under this idempotency key was given: never the key's text, but what it is made of;
-- and whether that request had the same body.
local function givenBefore()
  local text = A.body ~= "" and redis.call("GET", K.idempotency)
  if not text then return nil end
  local given = cjson.decode(text)
  local record = redis.call("HGET", K.apiKeys, given.id)
  return record and given.salt .. " " .. record, given.body == A.body
end

local function rememberGiven(id)
  if A.body == "" then return end
  local given = cjson.encode({ body = A.body, id = id, salt = A.salt })
  redis.call("SET", K.idempotency, given, "PX", A.keepMs)
end

-- The answer to a request for a new key that makes none: the same again, by its idempotency key or because
-- its first answer was lost (`made`), or one by a key that lets nobody in any more.
local function answerWithoutKey(key, made)
  local given, isSame = givenBefore()
  if given then return isSame and plain("same", given) or plain("mismatch") end
  local present = redis.call("HGET", K.apiKeys, key.id)
  if present then return plain(made, present) end
  if A.maker ~= "" and hasEnded(A.maker) then return plain("ended") end
end
