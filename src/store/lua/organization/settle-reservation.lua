-- settle-reservation: make a reservation what its owner's record says, unless it was reserved anew meanwhile.
-- KEYS  reservations usage
-- ARGV  owner project kind before size deadline
-- REPLY settled, kept
-- `before` is the text that was read, empty where there was none. Without a record `size` is 0. `deadline` is
-- empty where the reservation keeps its own.
--- @include base
--- @include organization/reservations

if (redis.call("HGET", K.reservations, A.owner) or "") ~= A.before then return plain("kept") end
local before = readReservation(A.owner)
local size, deadline = tonumber(A.size), tonumber(A.deadline) or before and before.deadline or now
local reservation = { kind = A.kind, project = A.project, size = size, deadline = deadline }
setReservation(A.owner, size > 0 and reservation or nil)
return plain("settled")
