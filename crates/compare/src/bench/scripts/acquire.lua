-- Takes a free lock, or takes one's own once more; tells others how long it is still held, in ms.
local lock, lease_ms, holder = KEYS[1], ARGV[1], ARGV[2]
if redis.call('exists', lock) == 0 or redis.call('hexists', lock, holder) == 1 then
    redis.call('hincrby', lock, holder, 1)
    redis.call('pexpire', lock, lease_ms)
    return nil
end
return redis.call('pttl', lock)
