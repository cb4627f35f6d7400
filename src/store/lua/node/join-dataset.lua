-- join-dataset: which dataset this Redis has, as a node asks that may know another. It is named by then.
-- KEYS  dataset epoch
-- ARGV  known seenAt apartMs lateMs
-- REPLY same, joined (the node knew none), emptied (what the node knew was here, and is gone), late (that was
--       longer ago than `lateMs`), foreign (it was here before the node has last seen the one that it knows)
-- Each word comes with the name.
-- A dataset is all that was written since Redis was empty; its name is the instant at which it was named.
-- `seenAt`: Redis's time when the node has last seen `known`. Clocks of two servers may differ by `apartMs`.
--- @include base

local seenUntil = tonumber(A.seenAt) - tonumber(A.apartMs)
local name = redis.call("GET", K.dataset)
if not name then
  -- Whoever has removed the name alone has emptied nothing: an epoch that began before is still there.
  local startedAt = tonumber(redis.call("HGET", K.epoch, "startedAt"))
  name = A.known ~= "" and startedAt and startedAt < seenUntil and A.known or microseconds()
  redis.call("SET", K.dataset, name)
end
if A.known == "" then return plain("joined", name) end
if name == A.known then return plain("same", name) end
local namedAt = tonumber(name) / 1000
if namedAt < seenUntil then return plain("foreign", name) end
if now - namedAt > tonumber(A.lateMs) then return plain("late", name) end
return plain("emptied", name)
