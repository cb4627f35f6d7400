-- free-name: give a name back, if it is still that owner's, and that very reservation where one is meant.
-- KEYS  names
-- ARGV  field owner deadline
-- REPLY freed, kept
--- @include base

local text = redis.call("HGET", K.names, A.field)
local held = text and cjson.decode(text)
if not held or held.owner ~= A.owner then return plain("kept") end
if A.deadline ~= "" and held.deadline ~= tonumber(A.deadline) then return plain("kept") end
redis.call("HDEL", K.names, A.field)
return plain("freed")
