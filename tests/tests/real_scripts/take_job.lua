-- Takes the next job of the first queue that has one, and notes who works on it.
local id
for i = 1, #KEYS - 2 do
  id = redis.call('LPOP', KEYS[i])
  if id then break end
end
if not id then return nil end
local jobs, active = KEYS[#KEYS - 1], KEYS[#KEYS]
local job = cjson.decode(redis.call('HGET', jobs, id) or '{}')
job.attempts = (job.attempts or 0) + 1
job.worker = ARGV[1]
redis.call('HSET', jobs, id, cjson.encode({ job.attempts, job.worker, job.data or cjson.null }))
redis.call('ZADD', active, ARGV[2], id)
return { id, job.attempts, cjson.encode(job.data or {}) }
