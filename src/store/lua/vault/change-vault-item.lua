-- change-vault-item: replace an item of a vault that is still of the version before; the link to its form is
-- void, and another is given where there is to be one. Where a form was submitted, its link is consumed, and
-- the same submission once more is the same change.
-- KEYS  vaultItems vaultValues vaultLinks vaultEvents vaultBytes collectionLink consumedLink
-- ARGV  vault id key version record values mostOfVault mostOfProject consumes submission nonce linkMs toldMs
--       event request eventsKept eventsMs
-- REPLY changed, stale, missing, used, expired, full
--- @include base
--- @include vault/vault-items

local id, version, createdAt = heldItem()
if id ~= A.id then return plain("missing") end
if wasMade(A.event, A.request) then return plain("changed") end
local link = A.consumes == "" or redis.call("GET", K.consumedLink)
if not link then return plain("missing") end
local by = A.consumes ~= "" and string.match(link, "^used ?(.*)$")
if by == A.submission then return plain("changed") end
if by then return plain("used") end
if version + 1 ~= A.version + 0 then return plain("stale") end
if A.consumes ~= "" and cjson.decode(link).expiresAt <= now then return plain("expired") end
if not hasRoom(A.version, createdAt) then return plain("full") end
if A.consumes ~= "" then
  redis.call("SET", K.consumedLink, "used " .. A.submission, "KEEPTTL")
end
writeItem(A.version, createdAt)
redis.call("HDEL", K.vaultLinks, A.id)
if A.nonce ~= "" then offerLink(A.version) end
noteItemEvent(A.event, A.request, "")
return plain("changed")
