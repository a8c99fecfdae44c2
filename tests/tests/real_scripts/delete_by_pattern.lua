-- Keys that nobody declares.
local cursor, deleted = '0', 0
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 100)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    deleted = deleted + redis.call('DEL', key)
  end
until cursor == '0'
return deleted
