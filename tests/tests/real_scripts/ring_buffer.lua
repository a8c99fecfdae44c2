local entry = struct.pack('>I4I2s', tonumber(ARGV[1]), #ARGV[2], ARGV[2])
redis.call('LPUSH', KEYS[1], entry)
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[3]) - 1)
local out = {}
for i, packed in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local at, len, text = struct.unpack('>I4I2s', packed)
  out[i] = at .. ':' .. len .. ':' .. text
end
return table.concat(out, ' ')
