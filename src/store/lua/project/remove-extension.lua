-- remove-extension: forget an extension and free its name.
-- KEYS  extensions extensionNames extension
-- ARGV  id
-- REPLY removed, missing
--- @include registered

return removeRegistered(K.extension, K.extensionNames, K.extensions)
