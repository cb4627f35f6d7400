-- note-usage: what leases have used so far, as their nodes counted it.
-- KEYS  browsers nodeStamps
-- ARGV  used
-- REPLY noted
-- `used` is a JSON list of [browser, lease, usage]. Not remembered for repeats: the same count again changes
-- nothing.
--- @include base
--- @include write-record

for _, row in ipairs(cjson.decode(A.used)) do
  local browser = read(row[1])
  if browser and browser.lease and browser.lease.id == row[2] then
    browser.lease.usage = row[3]
    write(browser)
  end
end
return plain("noted")
