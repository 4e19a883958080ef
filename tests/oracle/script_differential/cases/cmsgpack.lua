return cmsgpack.pack(1)
----
return cmsgpack.pack(127,128,255,256,65535,65536,4294967295,4294967296,2^53)
----
return cmsgpack.pack(-1,-32,-33,-128,-129,-32768,-32769,-2147483648,-2147483649,-2^53)
----
return cmsgpack.pack(2^62,2^63,-2^63,2^64,-2^64)
----
return cmsgpack.pack(1.5,0.1,1e300,-0,1/0,-1/0)
----
return cmsgpack.pack(0/0)
----
return cmsgpack.pack(nil)
----
return cmsgpack.pack(true,false)
----
return cmsgpack.pack('')
----
return cmsgpack.pack('abc')
----
return cmsgpack.pack(('x'):rep(31))
----
return cmsgpack.pack(('x'):rep(32))
----
return cmsgpack.pack(('x'):rep(255))
----
return cmsgpack.pack(('x'):rep(256))
----
return #cmsgpack.pack(('x'):rep(65535))
----
return cmsgpack.pack(('x'):rep(65536)):sub(1,8)
----
return cmsgpack.pack({})
----
return cmsgpack.pack({1,2,3})
----
return cmsgpack.pack({1,2,nil,4})
----
return cmsgpack.pack({1,nil,3})
----
return cmsgpack.pack({[1]=1,[3]=3})
----
return cmsgpack.pack({a=1})
----
return cmsgpack.pack({a=1,b=2,c={1,2}})
----
return cmsgpack.pack({[1.5]=1})
----
return cmsgpack.pack({[0]=1})
----
return cmsgpack.pack({[-1]=1})
----
return cmsgpack.pack({1,2,x=3})
----
return cmsgpack.pack({[true]=1})
----
return cmsgpack.pack({[{}]=1})
----
local t={} for i=1,15 do t[i]=i end return cmsgpack.pack(t)
----
local t={} for i=1,16 do t[i]=i end return cmsgpack.pack(t)
----
local t={} for i=1,70000 do t[i]=1 end return cmsgpack.pack(t):sub(1,8)
----
local t={} for i=1,15 do t['k'..i]=i end return cmsgpack.pack(t)
----
local t={} for i=1,16 do t['k'..i]=i end return cmsgpack.pack(t)
----
local t={} for i=1,15 do t={t} end return cmsgpack.pack(t)
----
local t={} for i=1,16 do t={t} end return cmsgpack.pack(t)
----
local t={} for i=1,40 do t={t} end return cmsgpack.pack(t)
----
local t={} for i=1,40 do t={a=t} end return cmsgpack.pack(t)
----
local t={} t[1]=t return cmsgpack.pack(t)
----
return cmsgpack.pack(function() end)
----
return cmsgpack.pack(cjson.null)
----
return cmsgpack.pack()
----
return cmsgpack.pack(1,'a',{})
----
local t=setmetatable({},{__index=function() return 5 end}) return cmsgpack.pack(t)
----
return cmsgpack.unpack('\1')
----
return {cmsgpack.unpack('\1\2\3')}
----
return {cmsgpack.unpack('')}
----
return cmsgpack.unpack('\127')
----
return cmsgpack.unpack('\224')
----
return cmsgpack.unpack('\255')
----
return cmsgpack.unpack('\204\255')
----
return cmsgpack.unpack('\205\1\0')
----
return cmsgpack.unpack('\206\1\0\0\0')
----
return tostring(cmsgpack.unpack('\207\255\255\255\255\255\255\255\255'))
----
return cmsgpack.unpack('\208\128')
----
return cmsgpack.unpack('\209\128\0')
----
return cmsgpack.unpack('\210\128\0\0\0')
----
return tostring(cmsgpack.unpack('\211\128\0\0\0\0\0\0\0'))
----
return tostring(cmsgpack.unpack('\202\63\192\0\0'))
----
return tostring(cmsgpack.unpack('\203\63\185\153\153\153\153\153\154'))
----
return tostring(cmsgpack.unpack('\192'))
----
return cmsgpack.unpack('\194')
----
return cmsgpack.unpack('\195')
----
return cmsgpack.unpack('\163abc')
----
return cmsgpack.unpack('\217\3abc')
----
return cmsgpack.unpack('\218\0\3abc')
----
return cmsgpack.unpack('\219\0\0\0\3abc')
----
return cmsgpack.unpack('\147\1\2\3')
----
return cmsgpack.unpack('\220\0\2\1\2')
----
return cmsgpack.unpack('\221\0\0\0\2\1\2')
----
return cmsgpack.unpack('\129\161a\1').a
----
return cmsgpack.unpack('\222\0\1\161a\1').a
----
return cmsgpack.unpack('\223\0\0\0\1\161a\1').a
----
return cmsgpack.unpack('\163ab')
----
return cmsgpack.unpack('\147\1\2')
----
return cmsgpack.unpack('\129\161a')
----
return cmsgpack.unpack('\129')
----
return cmsgpack.unpack('\204')
----
return cmsgpack.unpack('\205\1')
----
return cmsgpack.unpack('\203\1')
----
return cmsgpack.unpack('\219\255\255\255\255')
----
return cmsgpack.unpack('\221\255\255\255\255')
----
return cmsgpack.unpack('\193')
----
return cmsgpack.unpack('\196\1a')
----
return cmsgpack.unpack('\212\1\1')
----
return cmsgpack.unpack('\1\193')
----
return cmsgpack.unpack('\129\192\1')
----
return cmsgpack.unpack('\129\203\127\248\0\0\0\0\0\0\1')
----
return cmsgpack.unpack('\146\1\192')
----
return cmsgpack.unpack('\146\192\1')
----
return cmsgpack.unpack(5)
----
return cmsgpack.unpack()
----
return cmsgpack.unpack({})
----
return cmsgpack.unpack(('\145'):rep(100)..'\1') ~= nil
----
return cmsgpack.unpack(('\145'):rep(3000)..'\1') ~= nil
----
return cmsgpack.unpack(('\145'):rep(5000)..'\1') ~= nil
----
return cmsgpack.unpack(('\129\1'):rep(5000)..'\1') ~= nil
----
return select('#',cmsgpack.unpack(('\1'):rep(7000)))
----
return select('#',cmsgpack.unpack(('\1'):rep(9000)))
----
return {cmsgpack.unpack('\1','\2',3)}
----
return {cmsgpack.unpack_one('\1\2\3')}
----
return {cmsgpack.unpack_one('\1\2\3',1)}
----
return {cmsgpack.unpack_one('\1\2\3',2)}
----
return {cmsgpack.unpack_one('\1\2\3',3)}
----
return {cmsgpack.unpack_one('\1\2\3',4)}
----
return {cmsgpack.unpack_one('\1\2\3',-1)}
----
return {cmsgpack.unpack_one('')}
----
return {cmsgpack.unpack_one('\1\2\3','x')}
----
return {cmsgpack.unpack_one()}
----
return {cmsgpack.unpack_limit('\1\2\3',2)}
----
return {cmsgpack.unpack_limit('\1\2\3',2,1)}
----
return {cmsgpack.unpack_limit('\1\2\3',9)}
----
return {cmsgpack.unpack_limit('\1\2\3',0)}
----
return {cmsgpack.unpack_limit('\1\2\3',0,1)}
----
return {cmsgpack.unpack_limit('\1\2\3',-1)}
----
return {cmsgpack.unpack_limit('\1\2\3')}
----
return {cmsgpack.unpack_limit('\1\2\3',1,9)}
----
return {cmsgpack.unpack(cmsgpack.pack(1,'a',true,{1,2}))}
----
return cjson.encode(cmsgpack.unpack(cmsgpack.pack({a={1,2,{b='c'}},d=1.5})))
----
return {pcall(cmsgpack.unpack,'\193')}
----
return cmsgpack._NAME..cmsgpack._VERSION..cmsgpack._COPYRIGHT..cmsgpack._DESCRIPTION
----
return cmsgpack.pack(unpack(ARGV))
----
return cmsgpack.pack(redis.call('ping'))
----
return cmsgpack.unpack_one('\1\2\3', 2^40)
----
return {cmsgpack.unpack_one('\1\2\3', -2^40)}
----
return {cmsgpack.unpack_limit('\1\2\3', 2^40, 1)}
----
return {cmsgpack.unpack_limit('\1\2\3', 2^40, 2^33 + 1)}
----
return {cmsgpack.unpack_limit('\1\2\3', 2^32, 0)}
----
return {cmsgpack.unpack_limit('\1\2\3', -2^32, 0)}
----
return {cmsgpack.unpack_limit('\1\2\3', 2, 1, 'x', 'y')}
----
return {cmsgpack.unpack_limit('\1\2\3', 0, 1)}
----
return {cmsgpack.unpack_limit('\1\2\3', 2, 3)}
