-- remove-otlp-destination: forget an OTLP destination and free its name.
-- KEYS  otlpDestinations otlpDestinationNames otlpDestination
-- ARGV  id
-- REPLY removed, missing
--- @include registered

return removeRegistered(K.otlpDestination, K.otlpDestinationNames, K.otlpDestinations)
