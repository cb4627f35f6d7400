-- change-project: call a project otherwise, archive it, or make it active again; what is empty stays.
-- KEYS  projects projectNames activeProjects
-- ARGV  id name status closingMs
-- REPLY changed, missing, taken
-- `closingMs`: it is closed to be looked at once more, and to be again what it was after so long unless it is
-- settled before; else empty, and whoever sets a status ends a closing.
--- @include base

local text = redis.call("HGET", K.projects, A.id)
if not text then return plain("missing") end
local project = cjson.decode(text)
local name = A.name ~= "" and A.name or project.name
local holder = redis.call("HGET", K.projectNames, name)
if holder and holder ~= A.id then return plain("taken") end
if A.closingMs ~= "" then
  local before = project.closing or project
  project.closing = { name = before.name, status = before.status, deadline = now + tonumber(A.closingMs) }
elseif A.status ~= "" then
  project.closing = nil
elseif project.closing then
  project.closing.name = name
end
redis.call("HDEL", K.projectNames, project.name)
redis.call("HSET", K.projectNames, name, A.id)
project.name, project.updatedAt = name, now
project.status = A.status ~= "" and A.status or project.status
redis.call("HSET", K.projects, A.id, cjson.encode(project))
redis.call(project.status == "active" and "SADD" or "SREM", K.activeProjects, A.id)
return plain("changed")
