-- create-project: note a new project, where its name is free and there are not as many as there may be.
-- KEYS  projects projectNames activeProjects
-- ARGV  id name most
-- REPLY created, taken, many
--- @include base

if redis.call("HEXISTS", K.projects, A.id) == 1 then return plain("created") end
if redis.call("HEXISTS", K.projectNames, A.name) == 1 then return plain("taken") end
if redis.call("HLEN", K.projects) >= tonumber(A.most) then return plain("many") end
local project = { id = A.id, name = A.name, status = "active", createdAt = now, updatedAt = now }
redis.call("HSET", K.projects, A.id, cjson.encode(project))
redis.call("HSET", K.projectNames, A.name, A.id)
redis.call("SADD", K.activeProjects, A.id)
return plain("created")
