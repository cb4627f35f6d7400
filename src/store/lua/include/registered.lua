-- registered: what a project has of its registry: a record of each, found by its id and by its name.
--- @include base

local function removeRegistered(record, names, list)
  if redis.call("EXISTS", record) == 0 then return plain("missing") end
  local name = redis.call("HGET", record, "name")
  if name then redis.call("HDEL", names, name) end
  redis.call("ZREM", list, A.id)
  redis.call("DEL", record)
  return plain("removed")
end
