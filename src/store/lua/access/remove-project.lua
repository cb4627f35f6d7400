-- remove-project: forget a project and free its name; what late requests have left in it is looked for yet.
-- KEYS  projects projectNames activeProjects deletedProjects
-- ARGV  id
-- REPLY removed, missing
--- @include base

local text = redis.call("HGET", K.projects, A.id)
if not text then return plain("missing") end
redis.call("HDEL", K.projectNames, cjson.decode(text).name)
redis.call("HDEL", K.projects, A.id)
redis.call("SREM", K.activeProjects, A.id)
redis.call("ZADD", K.deletedProjects, now, A.id)
return plain("removed")
