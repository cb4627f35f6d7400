-- count-vault-bytes: count anew what a vault keeps: items that were kept before sums were are not in them.
-- KEYS  vault vaultItems vaultValues vaultBytes
-- ARGV  vault
-- REPLY counted, missing
--- @include base
--- @include vault/vault-items

if redis.call("EXISTS", K.vault) == 0 then return plain("missing") end
local bytes = 0
for _, part in ipairs({ K.vaultItems, K.vaultValues }) do
  for _, field in ipairs(redis.call("HKEYS", part)) do
    bytes = bytes + redis.call("HSTRLEN", part, field)
  end
end
countBytes(bytes - (redis.call("HGET", K.vaultBytes, A.vault) or 0))
return plain("counted")
