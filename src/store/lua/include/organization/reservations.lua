-- reservations: how many browsers each owner, a pool or a session on demand, holds of its organization's
-- limits. `usage` has their sums by kind, and the numbers of owners: no reservation changes without them.

local function readReservation(owner)
  local text = redis.call("HGET", K.reservations, owner)
  if not text then return nil end
  local kind, project, size, deadline = string.match(text, "^(%S+) (%S+) (%d+) (%d+)$")
  return { kind = kind, project = project, size = tonumber(size), deadline = tonumber(deadline) }
end

local function usedOf(field)
  return tonumber(redis.call("HGET", K.usage, field) or 0)
end

local function addUsage(reservation, sign)
  local kind, ofProject = reservation.kind, " " .. reservation.project
  local amounts = {
    [kind] = reservation.size, [kind .. ofProject] = reservation.size, [kind .. "s" .. ofProject] = 1,
  }
  for field, amount in pairs(amounts) do
    if redis.call("HINCRBY", K.usage, field, sign * amount) == 0 then redis.call("HDEL", K.usage, field) end
  end
end

-- Puts this reservation of an owner in the place of the one it has, or takes that away where it is nil.
local function setReservation(owner, reservation)
  local before = readReservation(owner)
  if before then addUsage(before, -1) end
  if not reservation then
    redis.call("HDEL", K.reservations, owner)
    return
  end
  addUsage(reservation, 1)
  local text = string.format(
    "%s %s %d %.0f", reservation.kind, reservation.project, reservation.size, reservation.deadline
  )
  redis.call("HSET", K.reservations, owner, text)
end
