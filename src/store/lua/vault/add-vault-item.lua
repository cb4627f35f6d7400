-- add-vault-item: keep a new item of a vault, where its key has none and there are not as many as there may
-- be.
-- KEYS  vault vaultItems vaultValues vaultLinks vaultEvents vaultBytes vaultRemovals collectionLink
-- ARGV  vault id key record values most mostOfVault mostOfProject nonce linkMs toldMs event request
--       eventsKept eventsMs
-- REPLY created, found, missing, many, full
--- @include base
--- @include vault/vault-items

if redis.call("EXISTS", K.vault) == 0 then return plain("missing") end
if wasRemoved(A.id) then return plain("created") end
local held = heldItem()
if held == A.id then return plain("created") end
if held then return plain("found") end
if redis.call("HLEN", K.vaultItems) >= tonumber(A.most) then return plain("many") end
if not hasRoom("1", tostring(now)) then return plain("full") end
writeItem("1", tostring(now))
if A.nonce ~= "" then offerLink("1") end
noteItemEvent(A.event, A.request, "")
return plain("created")
