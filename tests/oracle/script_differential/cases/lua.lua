return tostring(1e15)..' '..tostring(2^53)..' '..tostring(0.1)
----
return tostring(1e100)
----
return tostring(-0)
----
return 10 % 3
----
return -10 % 3
----
return tostring(5.5 % -2)
----
return 2^10
----
return 7/2
----
return '10'+5
----
return '0x10'+0
----
return ' 5 '+0
----
return tostring(tonumber('1e5'))
----
return tonumber('10',2)
----
return tonumber('zz',36)
----
return tostring(tonumber('abc'))
----
return tostring(tonumber(''))
----
return tostring(tonumber(nil))
----
return 10 .. 'x'
----
return 1 .. 2
----
return #'abc'
----
return ('%5.2f|%d|%s|%q|%x|%g'):format(3.14159, 42, 'str', 'q"\n', 255, 1e20)
----
return ('%d'):format(3.7)
----
return ('%d'):format('10')
----
return ('%s'):format(nil)
----
return ('%10s|%-10s|'):format('a','b')
----
return ('%c%c'):format(65,66)
----
return ('%y'):format(1)
----
return ('hello world'):find('o w')
----
return {('hello world'):find('o w')}
----
return {('hello'):match('(h)(e)')}
----
return ('hello'):gsub('l','L')
----
return {('hello'):gsub('l','L')}
----
return {('abc'):gsub('%w','%0%0')}
----
return {('abc'):gsub('%w',{a='1',b=true})}
----
return {('abc'):gsub('%w',function(c) return c:upper() end)}
----
local t={} for w in ('one two'):gmatch('%a+') do t[#t+1]=w end return t
----
return ('x'):byte()
----
return {('abc'):byte(1,-1)}
----
return ('abc'):sub(-2)
----
return ('abc'):reverse()
----
return ('abc'):upper()
----
return ('a,b'):rep(2)
----
return string.char(72,105)
----
return string.char(256)
----
return string.len('a\0b')
----
local t={3,1,2} table.sort(t) return t
----
local t={3,1,2} table.sort(t, function(a,b) return a>b end) return t
----
local t={3,1,'x'} table.sort(t) return t
----
local t={1,2,3} table.remove(t,1) return t
----
local t={1,2,3} return table.remove(t)
----
return table.concat({1,2,3},',')
----
return table.concat({1,2,3},',',2,3)
----
return table.getn({1,2,3})
----
return table.maxn({1,2,[10]=3})
----
table.setn({},1)
----
return #{1,2,nil,4}
----
return #{nil,nil,3}
----
return #{n=1}
----
local t={} t[1]=1 t[2]=2 t[4]=4 return #t
----
return select('#',1,nil,nil)
----
return {select(2,'a','b','c')}
----
return select(-1,'a','b')
----
return {unpack({1,2,3})}
----
return {unpack({1,2,3},2)}
----
return {unpack({1,2,3},2,3)}
----
return math.floor(3.7)
----
return math.floor(-3.7)
----
return math.max(1,'5',3)
----
return math.min()
----
return tostring(math.huge)
----
return tostring(-math.huge)
----
return tostring(math.pi)
----
return tostring(math.sqrt(2))
----
return math.fmod(7,3)
----
return math.mod(7,3)
----
return {math.modf(3.7)}
----
return {math.frexp(8)}
----
return tostring(math.exp(1))..tostring(math.log(10))..tostring(math.log10(1000))
----
return tostring(math.sin(1))..tostring(math.cos(1))..tostring(math.tan(1))
----
local t={} for k,v in pairs({a=1,b=2,c=3,d=4,e=5,f=6}) do t[#t+1]=k end return t
----
local t={} for k,v in pairs({10,20,x=1,30,y=2}) do t[#t+1]=tostring(k) end return t
----
local t={} for i=1,40 do t['key'..i]=i end local r={} for k in pairs(t) do r[#r+1]=k end return r
----
local t={} for i=1,20 do t[i*1.5]=i end local r={} for k in pairs(t) do r[#r+1]=tostring(k) end return r
----
local t={} for i=40,1,-1 do t[i]=i end for i=1,40,3 do t[i]=nil end local r={} for k in pairs(t) do r[#r+1]=k end return r
----
local t={[true]=1,[false]=2,[1]=3,['1']=4} local r={} for k in pairs(t) do r[#r+1]=tostring(k) end return r
----
local t=setmetatable({},{__index=function(t,k) return k..'!' end}) return t.foo
----
local t=setmetatable({},{__newindex=function(t,k,v) rawset(t,k,v*2) end}) t.a=5 return t.a
----
local t=setmetatable({},{__call=function(self,a) return a+1 end}) return t(5)
----
local t=setmetatable({},{__add=function(a,b) return 'added' end}) return t+1
----
local t=setmetatable({},{__eq=function() return true end}) return t==setmetatable({},getmetatable(t))
----
local t=setmetatable({},{__lt=function() return true end}) return t<t
----
local t=setmetatable({},{__len=function() return 42 end}) return #t
----
local t=setmetatable({},{__concat=function(a,b) return 'cat' end}) return t..'x'
----
local t=setmetatable({},{__metatable='locked'}) return getmetatable(t)
----
local t=setmetatable({},{__metatable='locked'}) setmetatable(t,{})
----
local t=setmetatable({},{__tostring=function() return 'custom' end}) return tostring(t)
----
local t=setmetatable({},{__tostring=function() return {} end}) return type(tostring(t))
----
local t=setmetatable({},{__index=error}) return t.x
----
return type(tostring({}))
----
return tostring({}):match('^table: 0x%x+$') ~= nil
----
return tostring(tostring):match('^function: 0x%x+$') ~= nil
----
return tostring(coroutine.create(function() end)):match('^thread: 0x%x+$') ~= nil
----
return tostring(cjson.null)
----
return tostring(nil)
----
return tostring()
----
local a <close> = 1
----
local function v(...) return select('#',...), arg == nil end return {v(1,2)}
----
local function v(...) return arg.n end return v(1,2)
----
local t={} t.x, t.y = 1, 2 return {t.x,t.y}
----
local a,b = 1 return b
----
repeat local x=1 until x==1 return 'done'
----
local i=0 while true do i=i+1 if i>10 then break end end return i
----
for i=10,1,-3 do KEYS[#KEYS+1]=i end return KEYS
----
return not nil
----
return nil == false
----
return 1 == '1'
----
return 'a' < 'b'
----
return 'a' .. 1 + 2
----
return 2^-1 == 0.5
----
return (function() return 1,2,3 end)()
----
return {(function() return 1,2,3 end)()}
----
return {((function() return 1,2,3 end)())}
----
return [[
long]]
----
return [==[a]]b]==]
----
return '\65\066\x'
----
return "a\
b"
----
return 0xff
----
return 1e2
----
return .5 == 0.5
----
return 5 -- comment
----
return --[[ x ]] 5
----
local s = 0 for i = 1, 300000 do s = s + i end return s
----
local t = {} for i = 1, 100000 do t[i] = i end return #t
----
local s = {} for i = 1, 1000 do s[#s+1] = ('x'):rep(i) end return #table.concat(s)
----
return string.rep('ab', 3, ',')
----
return string.format('%s %s', 1, 2.5)
----
return string.format('%5d|%-5d|%05d', 1, 2, 3)
----
return string.format('%e %E %G', 1.5, 1.5, 1e-10)
----
return string.format('%i %u %o %X', 5, 5, 8, 255)
----
return string.format('%.3s', 'abcdef')
----
return string.format('%', 1)
----
return string.format('%s')
----
return string.format('%.100f', 1)
----
return string.format('%.99f', 1/3)
----
return string.format('%100d', 1)
----
return ('a'):find('a', 1, true)
----
return ('a.b'):find('.', 1, true)
----
return ('x'):find('[')
----
return ('x'):find('%')
----
return ('x'):gsub('x', '%2')
----
return ('x'):match('()')
----
return ('[test]'):match('%[(.-)%]')
----
return ('THE (quick) fox'):find('%((%a+)%)')
----
return ('hello'):gsub('', '-')
----
return ('abc'):gsub('b', '%%')
----
return ('f(a(b)c)d'):match('%b()')
----
return ('THE fox'):gsub('%f[%a]%a+', 'X')
----
return string.gfind('a b', '%a')()
----
return string.dump(tostring)
----
--only 7.0
return unpack({}, -1, 2147483647)
----
--only 7.0
return unpack({}, -2147483648, 2147483647)
----
--only 7.0
return {pcall(unpack, {}, 0, 2147483647)}
----
return unpack({}, 1, 2147483647)
----
return unpack({}, 1, 2147483646)
----
--only 7.0
return unpack({}, -2147483648, -1)
----
return {select('#', unpack({}, 2147483647, 2147483647)), select('#', unpack({}, -2147483648, -2147483648))}
----
return {select('#', unpack({}, 1, 7997)), (pcall(unpack, {}, 1, 7998)), select('#', unpack({}, 3, 2))}
----
return {unpack({1, 2, 3}, '2'), unpack({1, 2, 3}, nil, '1'), select('#', unpack({1, 2, nil, 4}, nil, nil))}
----
return {unpack({1, 2, 3}, 1.9, 2.9)}
----
return unpack('x')
----
return unpack({}, {})
----
return unpack({}, 1, {})
----
return unpack({}, 1, false)
----
return select('#', unpack(setmetatable({}, {__index = function() return 1 end}), 1, 3))
