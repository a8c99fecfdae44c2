-- Sets the bits of each word; says which were there already.
local seen = {}
for i, word in ipairs(ARGV) do
  local hash = redis.sha1hex(word)
  local known = 1
  for k = 0, 3 do
    local part = tonumber(string.sub(hash, k * 8 + 1, k * 8 + 7), 16)
    local at = bit.band(bit.bxor(part, bit.rshift(part, 7)), 1023)
    if redis.call('SETBIT', KEYS[1], at, 1) == 0 then known = 0 end
  end
  seen[i] = known
end
return seen
