-- change-vault-item: replace an item of a vault that is still of the version before; the link to its form is
-- void, and another is given where there is to be one. Where a form was submitted, its link is consumed.
-- KEYS  vaultItems vaultValues vaultLinks vaultEvents collectionLink consumedLink
-- ARGV  vault id key version record values consumes nonce linkMs toldMs event request eventsKept eventsMs
-- REPLY changed, stale, missing, used, expired
--- @include base
--- @include vault-items

local id, version, createdAt = heldItem()
if id ~= A.id then return plain("missing") end
if wasMade(A.event, A.request) then return plain("changed") end
local link = A.consumes == "" or redis.call("GET", K.consumedLink)
if not link then return plain("missing") end
if link == "used" then return plain("used") end
if version + 1 ~= A.version + 0 then return plain("stale") end
if A.consumes ~= "" then
  if cjson.decode(link).expiresAt <= now then return plain("expired") end
  redis.call("SET", K.consumedLink, "used", "KEEPTTL")
end
writeItem(A.version, createdAt)
redis.call("HDEL", K.vaultLinks, A.id)
if A.nonce ~= "" then offerLink(A.version) end
noteItemEvent(A.event, A.request, "")
return plain("changed")
