-- Gives a writing hold back; the last one deletes the lock and tells those who wait.
local lock, channel, lease_ms, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2] .. ':write'
if redis.call('hget', lock, 'mode') ~= 'write' or redis.call('hexists', lock, holder) == 0 then
    return nil
end
if redis.call('hincrby', lock, holder, -1) > 0 then
    redis.call('pexpire', lock, lease_ms)
    return 0
end
redis.call('hdel', lock, holder)
if redis.call('hlen', lock) == 1 then
    redis.call('del', lock)
    redis.call('publish', channel, 'free')
else
    redis.call('hset', lock, 'mode', 'read')
end
return 1
