-- remove-project: forget a project that is closed and free its name; what late requests have left in it is
-- looked for yet.
-- KEYS  projects projectNames activeProjects deletedProjects
-- ARGV  id
-- REPLY removed, missing, active (somebody has made it so since it was closed; it stays)
--- @include base

local text = redis.call("HGET", K.projects, A.id)
-- The same again, whose first answer was lost on its way; or another's, that came a moment later.
if not text and redis.call("ZSCORE", K.deletedProjects, A.id) then return plain("removed") end
if not text then return plain("missing") end
local project = cjson.decode(text)
if project.status == "active" then return plain("active") end
redis.call("HDEL", K.projectNames, project.name)
redis.call("HDEL", K.projects, A.id)
redis.call("SREM", K.activeProjects, A.id)
redis.call("ZADD", K.deletedProjects, now, A.id)
return plain("removed")
