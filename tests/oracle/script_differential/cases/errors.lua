error('x')
----
error('x y z')
----
error('x',0)
----
error('x',2)
----
error('x',3)
----
error(12)
----
error(nil)
----
error()
----
error(true)
----
error({err='abc'})
----
error({err='abc def'})
----
error({err=12})
----
error({err='a\nb'})
----
error({err='x',source='foo',line=12})
----
error({err='x',line='foo'})
----
error('')
----
error('a\nb')
----
error('-CODE x')
----
if
----
x = = 1
----
return 'abc
----
goto x
----
for
----
return return
----
--[[
----
return 1 .. 
----
local x <const> = 1
----
x=~1
----
return "\xzz"
----
return redis.call()
----
return redis.call({})
----
return redis.call(nil)
----
return redis.call('get',nil)
----
return redis.call('get',true)
----
return redis.call('get',{})
----
return redis.call('get',function() end)
----
return redis.call('foo')
----
return redis.call('get')
----
return redis.call('get','a','b')
----
return redis.call('subscribe','a')
----
return redis.call(1)
----
return redis.call(1.5)
----
return redis.call('')
----
return redis.call('get','a',setmetatable({},{}))
----
redis.call('set','s','v') return redis.call('lpush','s','a')
----
redis.call('set','s','v') return redis.call('incr','s')
----
redis.call('set','s','v') return redis.pcall('lpush','s','a')
----
redis.call('set','s','v') local r = redis.pcall('lpush','s','a') return r.err
----
redis.call('set','s','v') return {redis.pcall('lpush','s','a'), 1}
----
redis.call('set','s','v') return {pcall(redis.call,'lpush','s','a')}
----
redis.call('set','s','v') local r = redis.pcall('lpush','s','a') local t = {} for k,v in pairs(r) do t[#t+1] = k..'='..tostring(v) end table.sort(t) return t
----
redis.call('set','s','v') local r = redis.pcall('lpush','s','a') error(r)
----
redis.call('set','s','v') local r = redis.pcall('lpush','s','a') return redis.error_reply(r.err)
----
return redis.pcall()
----
return redis.pcall({})
----
return redis.pcall('foo')
----
return {pcall(redis.call)}
----
return {pcall(redis.call,{})}
----
return {pcall(redis.pcall,{})}
----
return {pcall(error,{err='x'})}
----
return {pcall(error,{err=12})}
----
return {pcall(error,{})}
----
return {pcall(error,{err=true})}
----
return {pcall(error)}
----
return {pcall(error,nil)}
----
return {pcall(error,'x',0)}
----
return {pcall()}
----
return {pcall(nil)}
----
return {pcall(1,2)}
----
return {pcall(function(...) return ... end, 1, 'a', true)}
----
return {pcall(function() return 1 + nil end)}
----
return {pcall(function() local t = nil; return t.x end)}
----
return {pcall(pcall)}
----
return {pcall(pcall, error, 'x')}
----
return {xpcall(function() error('a') end, function(m) return m..'!' end)}
----
return {xpcall(function() return 1,2 end, function(m) return m..'!' end)}
----
return {xpcall(function() error({err='q'}) end, function(m) return m.err..'!' end)}
----
return {xpcall(function() error('a') end, function(m) error('b') end)}
----
return {xpcall(function() error('a') end)}
----
return {xpcall()}
----
return {xpcall(function() return redis.call('foo') end, function(m) return m end)}
----
return {xpcall(function() return redis.call('foo') end, __redis__err__handler)}
----
local a = function() error('deep') end a()
----
local a = function()\nerror('deep')\nend\na()
----
return __redis__err__handler('x')
----
return {__redis__err__handler({}).line}
----
return {__redis__err__handler('x').source}
----
return __redis__err__handler(nil)
----
return __redis__err__handler
----
assert(false)
----
assert(false,'msg')
----
assert(nil)
----
assert(false,{err='E x'})
----
assert(false,12)
----
return {assert(1,2,3)}
----
local a={} a.x.y=1
----
local a={} return a.x.y
----
local a={} a.b()
----
local a={} a:b()
----
local a a()
----
return 1+{}
----
return 1+'a'
----
return 'a'+1
----
return {}..'a'
----
return #5
----
return -{}
----
return {}<{}
----
return 1<'2'
----
return nil<1
----
return {}<1
----
local s='abc' return s:foo()
----
local t={} t[nil]=1
----
local t={} t[0/0]=1
----
for i=1,'x' do end
----
for i='x',1 do end
----
for i=1,2,'x' do end
----
for k in 5 do end
----
for k in pairs(nil) do end
----
for k in ipairs() do end
----
return table.concat({1,{},3})
----
return ('x'):rep({})
----
return string.rep()
----
return tonumber()
----
return tonumber('z',99)
----
return setmetatable(1,{})
----
return setmetatable({},1)
----
return getmetatable()
----
return select(0)
----
return select('x')
----
return unpack()
----
return unpack({},1,1e7)
----
local t={} for i=1,9000 do t[i]=1 end return select('#',unpack(t))
----
local t={} for i=1,7900 do t[i]=1 end return select('#',unpack(t))
----
local function f() return f()+1 end return f()
----
local function f() return pcall(f) end return f()
----
local function f() f() end f()
----
return string.rep('x',-1)
----
coroutine.yield()
----
return coroutine.running()
----
return coroutine.wrap(function() error('x') end)()
----
return coroutine.wrap(function() error({err='x y'}) end)()
----
return {coroutine.resume(coroutine.create(function() error('x') end))}
----
return {coroutine.resume(coroutine.create(function() error({err='x'}) end))}
----
return {coroutine.resume(coroutine.create(function() return redis.call('foo') end))}
----
return {pcall(coroutine.wrap(function() return redis.call('foo') end))}
----
coroutine.wrap(function() redis.call('foo') end)()
----
return coroutine.wrap(function() return redis.call('ping') end)()
----
return coroutine.wrap(1)
----
return coroutine.create(print)
----
return coroutine.create(tostring)
----
return coroutine.resume(1)
----
return coroutine.status(1)
----
local c = coroutine.create(function() end) coroutine.resume(c) return {coroutine.resume(c)}
----
local c = coroutine.wrap(function() coroutine.yield(1) return 2 end) return {c(),c()}
----
local c = coroutine.wrap(function() end) c() c()
----
local c c = coroutine.create(function() return coroutine.resume(c) end) return {coroutine.resume(c)}
----
local c c = coroutine.create(function() return coroutine.status(c) end) return {coroutine.resume(c)}
----
local c c = coroutine.create(function() return coroutine.running() == c end) return {coroutine.resume(c)}
----
return {coroutine.resume(coroutine.create(function(...) local a = coroutine.yield(...) return a end), 1, 2, 3)}
----
local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c) return coroutine.status(c)
----
local co; co = coroutine.wrap(function() return pcall(coroutine.yield, 1) end) return {co()}
----
return loadstring('x=1')()
----
return {loadstring('return 1 +')}
----
return loadstring('return 1 + 1')()
----
return {loadstring('\27Lua') == nil, select(2, loadstring('\27Lua'))}
----
return {loadstring('return', 'name')()}
----
return {loadstring('error("x")', 'name')}[1]()
----
loadstring('error("x")', 'name')()
----
loadstring('error("x")', '@name')()
----
loadstring('error("x")', '=name')()
----
loadstring('error("a very long chunk without any name at all, which has to be cut to fit into the message")')()
----
return load(function() return nil end)()
----
local n = 0 return load(function() n = n + 1 return ({'return ', '1', '2'})[n] end)()
----
return {load(function() return {} end)}
----
return {pcall(load, function() error('in reader') end)}
----
return {load(function() error('in reader') end)}
----
return load(1)
----
return loadstring()
----
return loadstring(string.dump(function() return 1 end)) == nil
----
return type(string.dump(function() return 1 end))
----
return redis.error_reply('a')
----
return redis.error_reply('a b')
----
return redis.error_reply('-a b')
----
return redis.error_reply('--a b')
----
return redis.error_reply('-A')
----
return redis.error_reply('')
----
return redis.error_reply('-')
----
return redis.error_reply(' x')
----
return redis.error_reply('ab\r\ncd')
----
return redis.error_reply('ab cd\r\n')
----
return redis.error_reply('a\0b')
----
return redis.error_reply()
----
return redis.error_reply({})
----
return redis.error_reply(12)
----
return redis.error_reply('a','b')
----
return redis.error_reply('a b').err
----
error(redis.error_reply('MY code'))
----
return redis.status_reply('fine')
----
return redis.status_reply('a\r\nb')
----
return redis.status_reply('a\0b')
----
return redis.status_reply()
----
return redis.status_reply(1)
----
return redis.status_reply('a').ok
----
local a = function()
error('deep')
end
a()
----
return redis.call('foo')
----
return 1,
2,
{}..''
----
local function f()
  redis.call('foo')
end
local function g()
  f()
end
g()
----
local t = {
1,
2,
3 +
}
----
x = function()
 return 1
end
----
return pcall(function()
 local x = nil
 return x.y
end)
----
error('a\0b', 0)
----
error({err='a\0b'})
----
return _G['a\0b']
----
return {err='\r\n'}
----
return {err='\r\nA b\r\n'}
----
return collectgarbage('\255\0x')
----
return redis.log(1/0, 'x')
----
return redis.setresp(-1/0)
----
return bit.bor(1, {}, 'x')
----
return {struct.unpack('', 'abc', -2)}
----
return {big_number='1\0002'}
----
local n = 0 return {load(function() n = n + 1 end) ~= nil, n}
----
local n = 0 local f = load(function() n = n + 1 if n == 2 then return 'return 7' end end) return {f(), n}
