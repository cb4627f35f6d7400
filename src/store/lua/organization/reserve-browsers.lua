-- reserve-browsers: hold so many browsers for a pool or a session on demand, within the limits of its
-- organization and its project. What the owner's record does not bear out after the deadline is void (the
-- tick looks).
-- KEYS  reservations usage limits
-- ARGV  owner project kind size graceMs concurrent pooled mostPools
-- REPLY reserved (its deadline, and after a space each the size and the deadline of what the owner held
--       before, zeros where that was nothing), many (the most pools), pooled, concurrent (that limit of the
--       organization, which is reached), ofProject (that of its project)
-- `kind`: pool or session. `concurrent` and `pooled` are the organization's limits, empty without one.
-- `limits` has those of projects: under `default`, and under a project's name where it has its own.
--- @include base
--- @include organization/reservations

local before = readReservation(A.owner)
local held = before and before.size or 0
local more = tonumber(A.size) - held

local function exceeds(limit, used)
  return limit and limit ~= "" and used + more > tonumber(limit)
end

local function refused()
  if A.kind == "pool" and not before and usedOf("pools " .. A.project) >= tonumber(A.mostPools) then
    return plain("many", A.mostPools)
  end
  -- Who asks for no more than it has may have it, also where a limit was lowered since.
  if more <= 0 then return nil end
  if A.kind == "pool" and exceeds(A.pooled, usedOf("pool")) then return plain("pooled", A.pooled) end
  local used = usedOf("pool") + usedOf("session")
  if exceeds(A.concurrent, used) then return plain("concurrent", A.concurrent) end
  local own = redis.call("HGET", K.limits, "project " .. A.project) or redis.call("HGET", K.limits, "default")
  if exceeds(own, usedOf("pool " .. A.project) + usedOf("session " .. A.project)) then
    return plain("ofProject", own)
  end
end

local refusal = refused()
if refusal then return refusal end
-- Each reservation has a deadline of its own, so that one that is settled leaves a later one of its owner.
local deadline = math.max(now + tonumber(A.graceMs), before and before.deadline + 1 or 0)
-- A pool that is to shrink holds what it has until its record says less.
setReservation(A.owner, {
  kind = A.kind, project = A.project, size = math.max(tonumber(A.size), held), deadline = deadline,
})
return plain("reserved", string.format("%.0f %d %.0f", deadline, held, before and before.deadline or 0))
