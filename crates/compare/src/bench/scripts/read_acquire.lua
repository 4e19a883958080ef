-- Takes a lock for reading: others may read too, nobody may write. Each hold has an expiry of its own.
local lock, holds, lease_ms, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local mode = redis.call('hget', lock, 'mode')
if mode == 'write' and redis.call('hexists', lock, holder .. ':write') == 0 then
    return redis.call('pttl', lock)
end
if not mode then
    redis.call('hset', lock, 'mode', 'read')
end
local hold = holds .. ':' .. redis.call('hincrby', lock, holder, 1)
redis.call('set', hold, 1)
redis.call('pexpire', hold, lease_ms)
redis.call('pexpire', lock, math.max(redis.call('pttl', lock), lease_ms))
return nil
