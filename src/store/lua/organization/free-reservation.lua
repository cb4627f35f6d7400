-- free-reservation: give back all that an owner holds.
-- KEYS  reservations usage
-- ARGV  owner
-- REPLY freed
--- @include base
--- @include organization/reservations

setReservation(A.owner, nil)
return plain("freed")
