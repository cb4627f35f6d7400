-- judged: what comes before a command that judges the API key of whoever asks for it. Where the key is not
-- good, or nothing is left of its rate, the command is not run.
--- @include base
--- @include organization/rates

-- The same request again, whose first answer was lost on its way, was judged then: it has done its work.
local function isRepeat()
  local first = redis.call("GET", K.answer)
  if first and (K.answer .. first):find(A.asker, 1, true) then return true end
  -- Where a browser was lent, the lease is the answer.
  local held = redis.call("HGET", K.leases, A.lease)
  local text = held and redis.call("HGET", K.browsers, held)
  return text and text:find(A.asker, 1, true) ~= nil
end

-- What is told of the rate where the key is good; nil where it is not.
local function judgeKey()
  local entry = redis.call("HGET", K.keyDigests, A.digest)
  local expires = entry and entry:match("^%w+ ?(%d*)$")
  if not expires or expires ~= "" and now >= tonumber(expires) then return nil end
  local isActive = A.project == "default" or redis.call("SISMEMBER", K.activeProjects, A.project) == 1
  if not isActive then return nil end
  local mayTake, rate = takeOne(K.callerRate, A.perMinute)
  return mayTake and rate or nil
end

local rate = judgeKey() or isRepeat() and ""
if not rate then return plain("unjudged") end
