-- remove-profile: forget a profile and free its name.
-- KEYS  profiles profileNames profile
-- ARGV  id
-- REPLY removed, missing
--- @include registered

return removeRegistered(K.profile, K.profileNames, K.profiles)
