x=1
----
return x
----
_G.x=1
----
return _G.x
----
local y = _G['nope']
----
return _G[{}]
----
return _G[nil]
----
return _G[12]
----
return rawset(_G,'a',1)
----
return rawget(_G,'nope')
----
return rawget(_G,'redis')==redis
----
setmetatable(_G,{})
----
setmetatable(redis,{})
----
setmetatable(redis,nil)
----
setmetatable(redis)
----
redis.call=1
----
redis.foo=1
----
redis[1]=1
----
math.pi=3
----
string.rep=1
----
table.insert(redis,1)
----
table.insert(redis,1,2)
----
table.insert(redis,1,2,3)
----
table.insert(redis)
----
table.insert(redis,'x',2)
----
table.sort(redis)
----
table.setn(redis,1)
----
return table.remove(redis)
----
return table.remove(redis,1)
----
return table.concat(redis)
----
return table.maxn(redis)
----
return table.getn(redis)
----
return #redis
----
return #_G
----
return unpack(redis)
----
rawset(redis,'a',1)
----
rawset(redis,1)
----
rawset(1,2,3)
----
return next(redis) ~= nil
----
return next({})
----
return {next({5})}
----
return next({},'nope')
----
for k,v in pairs(redis) do if v == redis.call then return k end end
----
local f,t,n = pairs(redis) return {t == redis, n == nil, f == next}
----
local f,t,n = pairs(_G) return {t == _G, rawequal(t,_G)}
----
for i,v in ipairs(redis) do return i end
----
table.foreach(redis, function(k,v) if k=='REDIS_VERSION' then error(v) end end)
----
return table.foreach({5,6}, function(k,v) if v==6 then return k end end)
----
table.foreachi(redis, function() return 1 end)
----
return type(getmetatable(_G))
----
local t={} for k,v in pairs(getmetatable(_G)) do t[#t+1]=k..type(v) end return t
----
getmetatable(_G).__index=nil
----
getmetatable(_G).x=1
----
return getmetatable(_G).x
----
return tostring(getmetatable(redis))
----
return type(getmetatable(''))
----
--only 7.0
return getmetatable('').__index == string
----
return getmetatable(5)
----
return getmetatable(redis.call)
----
return getmetatable(cjson.null)
----
KEYS=1
----
ARGV={}
----
KEYS[1]='x' ARGV[5]='y' return {KEYS, ARGV}
----
table.insert(KEYS,'z') return KEYS
----
local k = KEYS KEYS[1] = nil return #k
----
redis=1
----
tonumber=nil
----
_G=nil
----
_VERSION='x'
----
local function f() x = 1 end f()
----
local function f() return function() x = 1 end end f()()
----
function f() end
----
function redis.f() end
----
local x = 1 x = 2 return x
----
for i=1,2 do x = i end
----
return _VERSION
----
return _G._G==_G
----
return _G==_G._G._G
----
return tostring(_G._G.redis==redis)
----
print(1)
----
dofile('x')
----
loadfile('x')
----
require('x')
----
module('x')
----
return package
----
return debug
----
return io
----
return os == nil
----
os.execute('ls')
----
return jit
----
return {type(os.clock())}
----
os.x = 1
----
return os.time
----
return rawequal(_G, _G._G)
----
return rawequal(redis, {})
----
return rawlen
----
return collectgarbage()
----
return collectgarbage('collect')
----
return collectgarbage('stop')
----
return collectgarbage('restart')
----
return collectgarbage('count') > 0
----
return collectgarbage('foo')
----
return collectgarbage({})
----
return type(gcinfo())
----
return newproxy == nil
----
return type(newproxy())
----
return type(newproxy(false))
----
return getfenv == nil
----
return getfenv(0)==_G
----
return getfenv(1)==_G
----
return getfenv()==_G
----
return getfenv(redis.call)==_G
----
return getfenv(tostring)==_G
----
return getfenv(-1)
----
return getfenv(50)
----
return getfenv({})
----
local f = function() return y end setfenv(f,{y=5}) return f()
----
local f = function() x = 5 end local e = {} setfenv(f,e) f() return e.x
----
local f = loadstring('x = 5') local e = {} setfenv(f,e) f() return e.x
----
local f = loadstring('x = 5') setfenv(f,_G) f()
----
setfenv(tostring,{})
----
setfenv(1,5)
----
setfenv('x',{})
----
local f = function() return redis.call('ping') end setfenv(f,_G) return f()
----
loadstring('x=1')()
----
loadstring('return x')()
----
loadstring('redis.x=1')()
----
loadstring('redis=1')()
----
return loadstring('return KEYS[1]')()
----
return loadstring('return ...')(5)
----
return select('#',...)
----
return (...)
----
string.x=1
----
return ('x'):rep(3)
----
return ('x').rep == string.rep
----
return ('x').nope
----
return ('x')[1]
----
local s = 'x' s.y = 1
----
return string.nope
----
return redis.nope
----
return cjson.nope
----
cjson.x=1
----
struct.x=1
----
bit.x=1
----
cmsgpack.x=1
----
coroutine.x=1
----
return {type(cjson),type(struct),type(cmsgpack),type(bit)}
----
--only 7.0
getmetatable('').x=1
----
--only 7.0
getmetatable('').__index=nil
----
local names = function(t) local r={} for k,v in pairs(t) do r[#r+1]=tostring(k)..':'..type(v) end table.sort(r) return table.concat(r,' ') end return names(_G)
----
local names = function(t) local r={} for k,v in pairs(t) do r[#r+1]=tostring(k)..':'..type(v) end table.sort(r) return table.concat(r,' ') end local out, libs = {}, {} for k,v in pairs(_G) do if type(v)=='table' and k~='_G' then libs[#libs+1]=k end end table.sort(libs) for _,k in ipairs(libs) do out[#out+1]=k..' '..names(_G[k]) end return out
