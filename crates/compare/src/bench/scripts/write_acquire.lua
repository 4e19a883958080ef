-- Takes a lock for writing: nobody else may read or write.
local lock, lease_ms, holder = KEYS[1], ARGV[1], ARGV[2] .. ':write'
local mode = redis.call('hget', lock, 'mode')
if not mode then
    redis.call('hset', lock, 'mode', 'write')
    redis.call('hset', lock, holder, 1)
    redis.call('pexpire', lock, lease_ms)
    return nil
end
if mode == 'write' and redis.call('hexists', lock, holder) == 1 then
    redis.call('hincrby', lock, holder, 1)
    redis.call('pexpire', lock, redis.call('pttl', lock) + lease_ms)
    return nil
end
return redis.call('pttl', lock)
