-- note-vault-event: note what has happened to an item of a vault without changing it.
-- KEYS  vaultItems vaultEvents
-- ARGV  id key event data request eventsKept eventsMs
-- REPLY noted, missing
--- @include base
--- @include vault/vault-items

if heldItem() ~= A.id then return plain("missing") end
noteItemEvent(A.event, A.request, A.data)
return plain("noted")
