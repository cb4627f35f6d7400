-- vault-items: an item of a vault as it is kept (its id, its version, when it was made and changed, by which
-- request, and its record, with a space between), the link to its form, and what has happened to it.

-- Gives the id and version of the item that a key names, when it was made, and what has changed it last.
local function heldItem()
  local text = redis.call("HGET", K.vaultItems, A.key)
  if not text then return nil end
  return string.match(text, "^(%S+) (%d+) (%d+) %d+ (%S+) ")
end

-- Counts what a vault keeps by so much more, and what all vaults of the project do, under a name that no
-- vault has.
local function countBytes(more)
  for _, of in ipairs({ A.vault, "all" }) do
    if redis.call("HINCRBY", K.vaultBytes, of, more) == 0 then redis.call("HDEL", K.vaultBytes, of) end
  end
end

local function heldBytes()
  return redis.call("HSTRLEN", K.vaultItems, A.key) + redis.call("HSTRLEN", K.vaultValues, A.id)
end

local function itemText(version, createdAt)
  return table.concat({ A.id, version, createdAt, now, A.request, A.record }, " ")
end

-- Whether there is room for the item as it is to be. One that becomes no larger always has it.
local function hasRoom(version, createdAt)
  local more = #itemText(version, createdAt) + #A.values - heldBytes()
  if more <= 0 then return true end
  local kept = redis.call("HMGET", K.vaultBytes, A.vault, "all")
  return (kept[1] or 0) + more <= A.mostOfVault + 0 and (kept[2] or 0) + more <= A.mostOfProject + 0
end

local function writeItem(version, createdAt)
  local before = heldBytes()
  redis.call("HSET", K.vaultItems, A.key, itemText(version, createdAt))
  redis.call("HSET", K.vaultValues, A.id, A.values)
  countBytes(heldBytes() - before)
end

-- Gives the item a link of this version. What is known of its token outlives it, to tell why it opens
-- nothing.
local function offerLink(version)
  local expiresAt = string.format("%.0f", now + A.linkMs)
  local link = { vault = A.vault, item = A.id, key = A.key }
  link.version, link.expiresAt = version + 0, expiresAt + 0
  local text = table.concat({ version, expiresAt, A.nonce }, " ")
  redis.call("HSET", K.vaultLinks, A.id, text)
  redis.call("SET", K.collectionLink, cjson.encode(link), "PX", A.linkMs + A.toldMs)
  return text
end

-- Whether one of the last changes is this request's: its answer was lost on its way, and it came again.
local function wasMade(name, request)
  local latest = redis.call("XREVRANGE", K.vaultEvents, "+", "-", "COUNT", 20)
  for at = 1, #latest do
    local fields = latest[at][2]
    if fields[2] == name and fields[4] == request then return true end
  end
  return false
end

-- The same event again is a command that was sent twice.
local function noteItemEvent(name, request, data)
  local last = redis.call("XREVRANGE", K.vaultEvents, "+", "-", "COUNT", 1)[1]
  if last and last[2][4] == request and last[2][2] == name then return end
  redis.call("XADD", K.vaultEvents, "MAXLEN", "~", A.eventsKept, "*",
    "name", name, "request", request, "data", data)
  redis.call("PEXPIRE", K.vaultEvents, A.eventsMs)
end

-- A vault or an item that was removed stays so. Its creation may arrive once more within the hour, by a
-- connection that was given up and that the server was not told to close, as that of a cluster's client.
local removalsMs = 3600000
local function noteRemoved(id)
  redis.call("ZREMRANGEBYSCORE", K.vaultRemovals, "-inf", string.format("%.0f", now - removalsMs))
  redis.call("ZADD", K.vaultRemovals, string.format("%.0f", now), id)
  redis.call("PEXPIRE", K.vaultRemovals, removalsMs)
end
local function wasRemoved(id)
  return redis.call("ZSCORE", K.vaultRemovals, id) ~= false
end
