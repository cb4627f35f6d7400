-- change-project: call a project otherwise, archive it, or make it active again; what is empty stays.
-- KEYS  projects projectNames activeProjects
-- ARGV  id name status
-- REPLY changed, missing, taken
--- @include base

local text = redis.call("HGET", K.projects, A.id)
if not text then return plain("missing") end
local project = cjson.decode(text)
local name = A.name ~= "" and A.name or project.name
local holder = redis.call("HGET", K.projectNames, name)
if holder and holder ~= A.id then return plain("taken") end
redis.call("HDEL", K.projectNames, project.name)
redis.call("HSET", K.projectNames, name, A.id)
project.name, project.updatedAt = name, now
project.status = A.status ~= "" and A.status or project.status
redis.call("HSET", K.projects, A.id, cjson.encode(project))
redis.call(project.status == "active" and "SADD" or "SREM", K.activeProjects, A.id)
return plain("changed")
