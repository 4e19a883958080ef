return redis.call('echo',1)
----
return redis.call('echo',1e15)
----
return redis.call('echo',123456789012345)
----
return redis.call('echo',1e16)
----
return redis.call('echo',1e17)
----
return redis.call('echo',99999999999999999)
----
return redis.call('echo',-1e17)
----
return redis.call('echo',2^53)
----
return redis.call('echo',2^62)
----
return redis.call('echo',2^63)
----
return redis.call('echo',4611686018427387903)
----
return redis.call('echo',1e18)
----
return redis.call('echo',1e19)
----
return redis.call('echo',1e20)
----
return redis.call('echo',1e22)
----
return redis.call('echo',1e300)
----
return redis.call('echo',3.1)
----
return redis.call('echo',0.1)
----
return redis.call('echo',-0.1)
----
return redis.call('echo',1e-7)
----
return redis.call('echo',1.5e-10)
----
return redis.call('echo',0/0)
----
return redis.call('echo',-(0/0))
----
return redis.call('echo',1/0)
----
return redis.call('echo',-1/0)
----
return redis.call('echo',-0)
----
return redis.call('echo',0)
----
return redis.call('echo',100/3)
----
return redis.call('echo','a\0b\r\n')
----
return redis.call('ECHO','x')
----
return redis.call('eChO','x')
----
return redis.call('set','a',1.5) and redis.call('get','a')
----
redis.call('set',1,2) return redis.call('get','1')
----
return redis.call('mget',1,'b',2.5,'c',3)
----
return redis.setresp(5)
----
return redis.setresp()
----
return redis.setresp(3,3)
----
return redis.setresp('3')
----
return redis.setresp('x')
----
return redis.setresp({})
----
return redis.log()
----
return redis.log(1)
----
return redis.log(9,'x')
----
return redis.log(-1,'x')
----
return redis.log('a','x')
----
return redis.log(1,nil)
----
return redis.log('1','x')
----
return redis.log(redis.LOG_DEBUG,'x',1,{})
----
return redis.sha1hex('')
----
return redis.sha1hex('abc')
----
return redis.sha1hex(12)
----
return redis.sha1hex({})
----
return redis.sha1hex(nil)
----
return redis.sha1hex()
----
return redis.sha1hex('a','b')
----
return redis.replicate_commands()
----
return redis.set_repl()
----
return redis.set_repl(1)
----
return redis.set_repl(0)
----
return redis.set_repl(9)
----
return redis.set_repl('x')
----
return redis.set_repl(1,2)
----
return redis.breakpoint()
----
return {redis.breakpoint()}
----
return {redis.debug('x')}
----
return redis.debug()
----
return redis.acl_check_cmd('get','x')
----
return redis.acl_check_cmd('nope')
----
return redis.acl_check_cmd()
----
return redis.acl_check_cmd({})
----
return {redis.LOG_DEBUG,redis.LOG_VERBOSE,redis.LOG_NOTICE,redis.LOG_WARNING}
----
return {redis.REPL_ALL,redis.REPL_AOF,redis.REPL_NONE,redis.REPL_REPLICA,redis.REPL_SLAVE}
----
return {redis.REDIS_VERSION,redis.REDIS_VERSION_NUM}
----
return {math.random(100),math.random(100),math.random(100)}
----
return tostring(math.random())
----
math.randomseed(5) return tostring(math.random())
----
math.randomseed(-5) return tostring(math.random())
----
math.randomseed(5.7) return {math.random(10,20),math.random(-5,5)}
----
math.randomseed('12') return math.random(1000)
----
math.randomseed(1e12) return math.random(1000)
----
return math.random(0)
----
return math.random(2,1)
----
return math.random(1,2,3)
----
return math.random('x')
----
return math.randomseed()
----
return math.random(1,2147483647)
----
return math.random(-2147483648,2147483647)
----
local t = {} for i=1,200 do t[i] = math.random(1000) end return t
----
#!lua
----
#!py
return 1
----
#!lua x=1
return 1
----
#!lua flags=a
return 1
----
#!lua flags=
return 1
----
#!lua flags=no-writes,
return 1
----
#!lua  flags=no-writes
return 1
----
#!lua name=x
return 1
----
#!lua flags=no-writes flags=allow-oom
return 1
----
#!luax
return 1
----
#!lua flags
return 1
----
#!
return 1
----
#!lua flags="no-writes"
return 1
----
#!lua flags='no-writes
return 1
----
#!lua flags=allow-cross-slot-keys,no-cluster,allow-stale,allow-oom
error("x")
----
#!lua	flags=no-writes
return 1
----
#!lua
return 1 +
----
# comment
return 1
