-- given-key: find what the first request under an idempotency key was given.
-- KEYS  apiKeys idempotency
-- ARGV  body
-- REPLY none, same (the salt and the record of the first attempt), mismatch
--- @include base
--- @include organization/api-keys

local given, isSame = givenBefore()
if not given then return plain("none") end
return isSame and plain("same", given) or plain("mismatch")
