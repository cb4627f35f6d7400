-- admit-caller: take a request of a caller who is known without a look-up (the root key, a person) out of its
-- rate, and judge whether the project that it is about is active.
-- KEYS  activeProjects callerRate
-- ARGV  project perMinute
-- REPLY admitted (its rate), limited (its rate), elsewhere (its rate)
-- `perMinute`: empty where requests have no rate; its rate is empty then, else how many are left, or of one
-- that is `limited` the ms until the next is there.
--- @include base
--- @include organization/rates

local mayTake, rate = takeOne(K.callerRate, A.perMinute)
if not mayTake then return plain("limited", rate) end
if A.project ~= "default" and redis.call("SISMEMBER", K.activeProjects, A.project) == 0 then
  return plain("elsewhere", rate)
end
return plain("admitted", rate)
