return nil
----
return true
----
return false
----
return
----

----
return 1
----
return 3.99
----
return -3.99
----
return 1e20
----
return -1e20
----
return 0/0
----
return 1/0
----
return -1/0
----
return 2^53
----
return 2^63
----
return -2^63
----
return 'text'
----
return ''
----
return 'a\r\nb\0c'
----
return {}
----
return {1,2,3}
----
return {3.99,'x',false,true,nil,1}
----
return {nil,1}
----
return {false,nil,1}
----
return {1,{2,{3,{4}}},'x'}
----
return {[1]='a',[3]='c'}
----
return {a=1,b=2}
----
return {ok='fine'}
----
return {ok='a\r\nb'}
----
return {ok='a\0b'}
----
return {ok=''}
----
return {ok=1}
----
return {ok=true}
----
return {ok={}}
----
return {err='bad'}
----
return {err='CODE bad thing'}
----
return {err='a\r\nb'}
----
return {err='a\0b'}
----
return {err=''}
----
return {err=1}
----
return {err=true}
----
return {err='x',1,2}
----
return {err='x',ignore_error_stats_update=true}
----
return {err='x',ok='y'}
----
return {ok='y',double=1}
----
return {double=1,map={}}
----
return {map={a=1},set={b=true}}
----
return {set={b=true},big_number='1'}
----
return {big_number='1',verbatim_string={string='s',format='txt'}}
----
return {1,{ok='a'},{err='b'},{double=1.5}}
----
return {double=3}
----
return {double=3.1}
----
return {double=-0}
----
return {double=1e17}
----
return {double=1e300}
----
return {double=1/0}
----
return {double=-1/0}
----
return {double='3'}
----
return {double={},5}
----
return {map={a=1}}
----
return {map={}}
----
return {map={{1,2}}}
----
return {map={a={map={b={1,2}}}}}
----
return {map=1,7}
----
return {set={a=true}}
----
return {set={[5]=true}}
----
return {set={}}
----
return {set={x=1}}
----
return {set=5,6}
----
return {big_number='123456789012345678901234567890'}
----
return {big_number='1\r\n2'}
----
return {big_number=12}
----
return {verbatim_string={string='text',format='mkd'}}
----
return {verbatim_string={string='a\0b\r\n',format='txt'}}
----
return {verbatim_string={string='x',format='abcd'}}
----
return {verbatim_string={string='x',format='ab'}}
----
return {verbatim_string={string='x',format=''}}
----
return {verbatim_string={string='x'}}
----
return {verbatim_string={format='txt'}}
----
return {verbatim_string='x',5}
----
return {verbatim_string={string=1,format='txt'}}
----
return {verbatim_string={string='x',format=1}}
----
return function() end
----
return redis
----
return _G.math
----
return coroutine.create(function() end)
----
return cjson.null
----
local t={} t[1]=t return t
----
local t={} for i=1,100 do t={t} end return t
----
local t={} for i=1,1000 do t={t} end return t
----
return KEYS
----
return ARGV
----
return {KEYS,ARGV,#KEYS,#ARGV}
----
return KEYS[3]
----
return setmetatable({},{__index=function() return 'z' end})
----
return setmetatable({},{__tostring=function() return 'z' end})
----
return 1,2,3
----
redis.setresp(3) return true
----
redis.setresp(3) return false
----
redis.setresp(3) return nil
----
redis.setresp(3) return {true,false,1}
----
redis.setresp(3) return {map={a=true}}
----
redis.setresp(2) return true
----
return redis.call('ping')
----
return redis.call('get','none')
----
return {redis.call('get','none'), 1}
----
return redis.call('get','none') == false
----
redis.setresp(3) return redis.call('get','none') == nil
----
redis.setresp(3) return redis.call('get','none')
----
redis.setresp(3) return {redis.call('get','none'), 1}
----
return redis.call('mget','a','b')
----
redis.setresp(3) return redis.call('mget','a','b')
----
return type(redis.call('ping'))
----
return redis.call('ping').ok
----
return redis.call('ping','x')
----
redis.call('hset','h','f','v','g','w') return redis.call('hgetall','h')
----
redis.call('hset','h','f','v','g','w') redis.setresp(3) return redis.call('hgetall','h')
----
redis.call('hset','h','f','v') redis.setresp(3) return redis.call('hgetall','h').map.f
----
redis.call('hset','h','f','v') redis.setresp(3) redis.setresp(2) return redis.call('hgetall','h')
----
redis.call('sadd','s','f') redis.setresp(3) return redis.call('smembers','s')
----
redis.call('sadd','s','f') redis.setresp(3) return tostring(redis.call('smembers','s').set.f)
----
redis.call('sadd','s','f') return redis.call('smembers','s')
----
redis.call('zadd','z',1.5,'f') redis.setresp(3) return redis.call('zscore','z','f')
----
redis.call('zadd','z',1.5,'f') redis.setresp(3) return tostring(redis.call('zscore','z','f').double)
----
redis.call('zadd','z',1.5,'f') return redis.call('zscore','z','f')
----
redis.call('zadd','z',0.1,'f') return redis.call('zscore','z','f')
----
redis.call('zadd','z',0.1,'f') redis.setresp(3) return redis.call('zscore','z','f')
----
redis.call('lpush','l','a','b') return redis.call('lrange','l',0,-1)
----
return redis.call('lrange','none',0,-1)
----
return redis.call('incr','n')
----
return redis.call('set','a','b')
