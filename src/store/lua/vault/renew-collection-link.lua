-- renew-collection-link: give an item that is still of this version a link to its form, unless it has one
-- that holds.
-- KEYS  vaultItems vaultLinks vaultEvents collectionLink
-- ARGV  vault id key version nonce linkMs toldMs event request eventsKept eventsMs
-- REPLY renewed (the link), kept (the link), stale
--- @include base
--- @include vault/vault-items

local id, version = heldItem()
if id ~= A.id or version ~= A.version then return plain("stale") end
local link = redis.call("HGET", K.vaultLinks, A.id)
local of, expiresAt = string.match(link or "", "^(%d+) (%d+)")
if of == version and expiresAt + 0 > now then return plain("kept", link) end
local offered = offerLink(version)
if A.event ~= "" then noteItemEvent(A.event, A.request, "") end
return plain("renewed", offered)
