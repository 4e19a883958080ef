return cjson.encode({1,2,3})
----
return cjson.encode({})
----
return cjson.encode({a=1,b='x',c=true,d=false})
----
return cjson.encode({a={b={c={}}}})
----
return cjson.encode('text')
----
return cjson.encode('a"\\/\b\t\n\f\r\0\1\31\127\128\255é')
----
return cjson.encode(1)
----
return cjson.encode(1.5)
----
return cjson.encode(0.1)
----
return cjson.encode(1/3)
----
return cjson.encode(1e15)
----
return cjson.encode(123456789012345)
----
return cjson.encode(12345678901234)
----
return cjson.encode(99999999999999)
----
return cjson.encode(100000000000000)
----
return cjson.encode(1e100)
----
return cjson.encode(-0)
----
return cjson.encode(-5)
----
return cjson.encode(2^53)
----
return cjson.encode(nil)
----
return cjson.encode(true)
----
return cjson.encode(cjson.null)
----
return cjson.encode({cjson.null,1})
----
return cjson.encode(0/0)
----
return cjson.encode(1/0)
----
return cjson.encode({-1/0})
----
return cjson.encode(function() end)
----
return cjson.encode({a=function() end})
----
return cjson.encode(coroutine.create(function() end))
----
return cjson.encode()
----
return cjson.encode(1,2)
----
return cjson.encode({[true]=1})
----
return cjson.encode({[1]='a',[2]='b',x='c'})
----
return cjson.encode({[1.5]='a'})
----
return cjson.encode({[-1]='a'})
----
return cjson.encode({[0]='a'})
----
return cjson.encode({[3]='a'})
----
return cjson.encode({[10]='a'})
----
return cjson.encode({[11]='a'})
----
return cjson.encode({[100]='a'})
----
return cjson.encode({1,2,nil,4})
----
return cjson.encode({1,nil,nil,4,nil,nil,nil,8})
----
return cjson.encode({[1]=1,[20]=2})
----
return cjson.encode({[1e10]=1})
----
return cjson.encode({x={[5]=1}})
----
return cjson.encode({{1,2},{3,4}})
----
return cjson.encode({1,'a',{b=2},true,false,cjson.null})
----
local t={} t.t=t return cjson.encode(t)
----
local t={} for i=1,500 do t={t} end return cjson.encode(t)
----
local t={} for i=1,999 do t={t} end return cjson.encode(t)
----
local t={} for i=1,1000 do t={t} end return cjson.encode(t)
----
local t={} for i=1,1000 do t={a=t} end return cjson.encode(t)
----
local t=setmetatable({},{__index=function() return 1 end}) return cjson.encode(t)
----
local t={} for i=1,30 do t['k'..i]=i end return cjson.encode(t)
----
return cjson.encode(KEYS)
----
return cjson.encode(ARGV)
----
return cjson.encode(redis.call('get','none'))
----
return cjson.encode(redis.pcall('foo'))
----
return cjson.encode(math)
----
return cjson.decode('[1,2,3]')
----
return cjson.decode('{"a":1}').a
----
return cjson.decode('[]')
----
return cjson.decode('{}')
----
return cjson.decode('"text"')
----
return cjson.decode('"\\u00e9\\u0041\\ud83d\\ude00"')
----
return cjson.decode('"\\u0000x"')
----
return cjson.decode('"\\ud83d"')
----
return cjson.decode('"\\ude00"')
----
return cjson.decode('"\\ud83d\\u0041"')
----
return cjson.decode('"\\ud83dx"')
----
return cjson.decode('"\\u12"')
----
return cjson.decode('"\\u12zz"')
----
return cjson.decode('"\\uffff\\u07ff\\u0800"')
----
return cjson.decode('"\\b\\f\\n\\r\\t\\/\\\\\\""')
----
return cjson.decode('"\\x"')
----
return cjson.decode('"abc')
----
return cjson.decode('"a\nb"')
----
return cjson.decode('"a\0b"')
----
return cjson.decode('"\1\255"')
----
return cjson.decode('1')
----
return tostring(cjson.decode('1.5'))
----
return tostring(cjson.decode('-1.5e3'))
----
return tostring(cjson.decode('1e400'))
----
return tostring(cjson.decode('01'))
----
return tostring(cjson.decode('0x10'))
----
return tostring(cjson.decode('0x1.8p1'))
----
return tostring(cjson.decode('-0x10'))
----
return tostring(cjson.decode('inf'))
----
return tostring(cjson.decode('-inf'))
----
return tostring(cjson.decode('Infinity'))
----
return tostring(cjson.decode('nan'))
----
return tostring(cjson.decode('NaN'))
----
return tostring(cjson.decode('-nan'))
----
return tostring(cjson.decode('1.'))
----
return tostring(cjson.decode('.5'))
----
return tostring(cjson.decode('+5'))
----
return tostring(cjson.decode('-'))
----
return tostring(cjson.decode('1e'))
----
return tostring(cjson.decode('1e5'))
----
return tostring(cjson.decode('12345678901234567890'))
----
return cjson.decode('true')
----
return cjson.decode('false')
----
return cjson.decode('null')
----
return cjson.decode('null') == cjson.null
----
return cjson.decode('[null]')[1] == cjson.null
----
return cjson.decode('True')
----
return cjson.decode('tru')
----
return cjson.decode('nul')
----
return cjson.decode('truex')
----
return cjson.decode('i')
----
return cjson.decode('n')
----
return cjson.decode('')
----
return cjson.decode(' ')
----
return cjson.decode('[1,]')
----
return cjson.decode('[,1]')
----
return cjson.decode('[1 2]')
----
return cjson.decode('[1')
----
return cjson.decode('[')
----
return cjson.decode(']')
----
return cjson.decode('{')
----
return cjson.decode('}')
----
return cjson.decode('{"a"}')
----
return cjson.decode('{"a":}')
----
return cjson.decode('{"a":1,}')
----
return cjson.decode('{"a":1 "b":2}')
----
return cjson.decode('{a:1}')
----
return cjson.decode('{1:1}')
----
return cjson.decode('{"a":1}}')
----
return cjson.decode('[1]x')
----
return cjson.decode('[1] 2')
----
return cjson.decode(' [ 1 , 2 ] ')
----
return cjson.decode('\t\n\r[1]\r\n')
----
return cjson.decode('\v[1]')
----
return cjson.decode('[1]\0')
----
return cjson.decode('[1]\0x')
----
return cjson.decode('\0[1]')
----
return cjson.decode('[\0')
----
return cjson.decode('/* */1')
----
return cjson.decode("'a'")
----
return cjson.decode(5)
----
return cjson.decode()
----
return cjson.decode('1','2')
----
return cjson.decode({})
----
return cjson.decode(nil)
----
return cjson.decode(true)
----
return cjson.decode(('['):rep(1000)..(']'):rep(1000)) ~= nil
----
return cjson.decode(('['):rep(1001)..(']'):rep(1001)) ~= nil
----
return cjson.decode(('{"a":'):rep(1001)..'1'..('}'):rep(1001))
----
return cjson.decode('{"a":1,"a":2}').a
----
return cjson.encode(cjson.decode('{"a":[1,2,{"b":null}],"c":"d"}'))
----
return cjson.encode(cjson.decode('[1.0,2.50,1e3]'))
----
local t = cjson.decode('{"b":1,"a":2,"c":3}') local r={} for k in pairs(t) do r[#r+1]=k end return r
----
local c=cjson.new() return {c.encode_max_depth(),c.decode_max_depth(),c.encode_number_precision(),tostring(c.encode_keep_buffer()),tostring(c.encode_invalid_numbers()),tostring(c.decode_invalid_numbers())}
----
local c=cjson.new() return {tostring(c.encode_sparse_array())}
----
local c=cjson.new() local a,b,d=c.encode_sparse_array() return {tostring(a),b,d}
----
local c=cjson.new() local a,b,d=c.encode_sparse_array(true,5,6) return {tostring(a),b,d}
----
local c=cjson.new() c.encode_sparse_array(true) return c.encode({[100]=1})
----
local c=cjson.new() c.encode_sparse_array(false,0) return c.encode({[15]=1})
----
local c=cjson.new() c.encode_sparse_array(nil,1,2) return c.encode({[3]=1})
----
local c=cjson.new() c.encode_sparse_array(nil,-1)
----
local c=cjson.new() c.encode_sparse_array(nil,1,-1)
----
local c=cjson.new() c.encode_sparse_array(1,2,3,4)
----
local c=cjson.new() c.encode_max_depth(2) return c.encode({{1}})
----
local c=cjson.new() c.encode_max_depth(2) return c.encode({{{1}}})
----
local c=cjson.new() return c.encode_max_depth(0)
----
local c=cjson.new() return c.encode_max_depth('x')
----
local c=cjson.new() return c.encode_max_depth(1,2)
----
local c=cjson.new() return c.encode_max_depth('7')
----
local c=cjson.new() c.decode_max_depth(2) return c.decode('[[1]]')
----
local c=cjson.new() c.decode_max_depth(2) return c.decode('[[[1]]]')
----
local c=cjson.new() c.encode_number_precision(3) return c.encode({1/3,1000,12345})
----
local c=cjson.new() return c.encode_number_precision(15)
----
local c=cjson.new() return c.encode_number_precision(0)
----
local c=cjson.new() c.encode_invalid_numbers(true) return c.encode({0/0,1/0,-1/0})
----
local c=cjson.new() c.encode_invalid_numbers('null') return c.encode({0/0,1/0,-1/0})
----
local c=cjson.new() return c.encode_invalid_numbers('null')
----
local c=cjson.new() return {tostring(c.encode_invalid_numbers('on')),tostring(c.encode_invalid_numbers('off'))}
----
local c=cjson.new() return c.encode_invalid_numbers('x')
----
local c=cjson.new() return c.encode_invalid_numbers({})
----
local c=cjson.new() c.decode_invalid_numbers(false) return tostring(c.decode('nan'))
----
local c=cjson.new() c.decode_invalid_numbers(false) return tostring(c.decode('0x10'))
----
local c=cjson.new() c.decode_invalid_numbers(false) return tostring(c.decode('01'))
----
local c=cjson.new() c.decode_invalid_numbers(false) return tostring(c.decode('-inf'))
----
local c=cjson.new() c.decode_invalid_numbers(false) return tostring(c.decode('10'))
----
local c=cjson.new() return tostring(c.encode_keep_buffer(false))
----
local c=cjson.new() c.encode_keep_buffer(false) return c.encode({1})..c.encode({2})
----
local c=cjson.new() c.x=1 return c.x
----
local n = 0 for k in pairs(cjson.new()) do n = n + 1 end return n
----
return cjson._NAME..cjson._VERSION
----
return {pcall(cjson.encode, {[100]=1})}
----
return {pcall(cjson.decode, '[')}
----
local ok, e = pcall(cjson.decode, '[') error(e)
----
return cjson.encode(('x'):rep(100))
----
return cjson.encode({1e14, 1e13, 123456.789, 1e-5, 0.00001234, 1.10})
