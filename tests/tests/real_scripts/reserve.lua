local wanted = cjson.decode(ARGV[1])
for _, line in ipairs(wanted) do
  local stock = tonumber(redis.call('HGET', KEYS[1], line.sku) or 0)
  if stock < line.count then
    return redis.error_reply('OUTOFSTOCK ' .. line.sku)
  end
end
local total = 0
for _, line in ipairs(wanted) do
  redis.call('HINCRBY', KEYS[1], line.sku, -line.count)
  total = total + line.count * line.price
end
redis.call('XADD', KEYS[2], ARGV[2], 'order', ARGV[1], 'total', string.format('%.2f', total))
return tostring(total)
