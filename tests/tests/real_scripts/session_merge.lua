-- Merges a packed session with another; answers its sorted fields.
local packed = redis.call('GET', KEYS[1])
local session = packed and cmsgpack.unpack(packed) or {}
for field, value in pairs(cjson.decode(ARGV[1])) do
  if value == cjson.null then session[field] = nil else session[field] = value end
end
redis.call('SET', KEYS[1], cmsgpack.pack(session), 'EX', 60)
local names = {}
for field, value in pairs(session) do names[#names + 1] = field .. '=' .. tostring(value) end
table.sort(names)
return names
