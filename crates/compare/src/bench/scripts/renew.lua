-- Makes a held lock last longer, as a watchdog does.
if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    return redis.call('pexpire', KEYS[1], ARGV[1])
end
return 0
