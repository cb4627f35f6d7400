-- settle-project: end the closing of a project: it stays archived, or is again what it was before.
-- KEYS  projects projectNames activeProjects
-- ARGV  id how
-- REPLY settled, kept (it is not being closed, or not for so long)
-- `how`: archived, reopened, or overdue, which is reopened where whoever has closed it has not settled it in
-- time.
--- @include base

local text = redis.call("HGET", K.projects, A.id)
local project = text and cjson.decode(text)
if not project or not project.closing then return plain("kept") end
local before = project.closing
if A.how == "overdue" and now < before.deadline then return plain("kept") end
project.closing = nil
if A.how ~= "archived" then
  -- Its name may be another's by now.
  if redis.call("HSETNX", K.projectNames, before.name, A.id) == 1 then
    redis.call("HDEL", K.projectNames, project.name)
    project.name = before.name
  end
  project.status = before.status
  if project.status == "active" then redis.call("SADD", K.activeProjects, A.id) end
end
redis.call("HSET", K.projects, A.id, cjson.encode(project))
return plain("settled")
