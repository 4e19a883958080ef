local depth = 0
local function nest() depth = depth + 1 return 1 + nest() end
local ok, why = pcall(nest)
return {tostring(ok), tostring(why):sub(1, 40), depth > 100}
----
local function nest(n) if n > 0 then return nest(n - 1) end error({n}) end
return {pcall(nest, 50), pcall(nest, 150)}
----
local function nest(n) return pcall(nest, n + 1) end
return tostring(nest(1))
----
local function nest(n) if n == 0 then error('x') end coroutine.wrap(nest)(n - 1) end
return {tostring((pcall(nest, 3))), tostring((pcall(nest, 30)))}
----
local function nest(n) local s = ('x'):gsub('x', function() return nest(n + 1) end) return s end
return tostring((pcall(nest, 1)))
----
local t = {} t[1] = t
return {pcall(cjson.encode, t), pcall(cmsgpack.pack, t)}
----
local t = {} for i = 1, 200 do t = {t} end
return {cjson.encode_max_depth(300), #cjson.encode(t), #cmsgpack.pack(t), t}
----
local t = {} for i = 1, 100 do t = {map = {a = t, set = {b = true}}} end return t
----
return {pcall(cjson.decode, ('['):rep(2000)), pcall(cjson.decode, ('{"a":'):rep(2000))}
----
return {pcall(cmsgpack.unpack, ('\145'):rep(500)), pcall(cmsgpack.unpack, ('\129\1'):rep(500))}
----
local all = {}
for _, f in ipairs({unpack, string.sub, string.byte, string.rep, string.find, table.concat, table.remove, select,
    math.random, tonumber, bit.lshift, bit.tohex, struct.unpack, cmsgpack.unpack_limit, cmsgpack.unpack_one, string.format}) do
    for _, first in ipairs({{}, {1, 2, 3}, 'x', '%d', 0, -1, 2^31}) do
        for _, a in ipairs({-2^63, -2^31 - 1, -2^31, -1, 0, 1, 2, 1/0, 0/0}) do
            local ok, why = pcall(f, first, a, -2^31)
            if not ok then all[#all + 1] = #why end
            pcall(f, first, -1, a)
        end
    end
end
return #all > 0
----
local events = {'__index', '__newindex', '__call', '__add', '__sub', '__mul', '__div', '__mod', '__pow', '__unm', '__concat', '__len',
    '__eq', '__lt', '__le', '__tostring', '__metatable', '__mode', '__gc'}
local uses = {
    function(o) return o.x end, function(o) o.x = 1 end, function(o) return o(1, 2) end, function(o) return o + 1 end,
    function(o) return 1 - o end, function(o) return o * o end, function(o) return o / 2 end, function(o) return o % 2 end,
    function(o) return o ^ 2 end, function(o) return -o end, function(o) return 'a' .. o .. 'b' end, function(o) return #o end,
    function(o) return o == setmetatable({}, getmetatable(o)) end, function(o) return o < o end, function(o) return o <= o end,
    tostring, getmetatable, function(o) return setmetatable(o, {}) end, next, pairs, ipairs, rawget, unpack, select,
    cjson.encode, cmsgpack.pack, table.concat, table.sort, table.remove, redis.sha1hex, redis.error_reply, redis.pcall, redis.log,
    function(o) return table.insert(o, 1) end, function(o) return redis.pcall('echo', o) end, function(o) error(o) end,
    function(o) return string.format('%s', o) end, function(o) return ('x'):gsub('x', o) end, function(o) return load(o) end,
    function(o) return coroutine.wrap(o) end, function(o) return struct.pack('i', o) end, function(o) return bit.bor(o, o) end,
}
local same = function(...) return ... end
local failures = 0
for _, handler in ipairs({error, function() error({}) end, function() error() end, same, function() end, tostring, pcall, next,
    setmetatable, coroutine.yield, redis.pcall, function() return 'x' end, function(o) return o end, 1, 'k', false, redis, {}}) do
    local meta = {}
    for _, event in ipairs(events) do meta[event] = handler end
    for _, use in ipairs(uses) do
        local o = setmetatable({1, 2, 3}, meta)
        if not pcall(use, o) then failures = failures + 1 end
        if not pcall(coroutine.wrap(use), o) then failures = failures + 1 end
    end
end
return failures > 0
----
local t = setmetatable({}, {__index = function(t, k) return t[k] end})
return tostring((pcall(function() return t.x end)))
----
local t = {} setmetatable(t, {__index = t, __newindex = t})
return {pcall(function() return t.x end), pcall(function() t.x = 1 end)}
----
local o = setmetatable({}, {__call = function(self, ...) local result = self(...) return result end})
return tostring((pcall(function() return 1 + o(1) end)))
----
local t = setmetatable({}, {__mode = 'kv'})
for i = 1, 100 do t[{}] = {} t[i] = {i} if i % 30 == 0 then collectgarbage() end end
return next(t) ~= 1
----
local function fail(e) error(e) end
return {xpcall(fail, fail), xpcall(fail, function() return {} end), xpcall(fail, error), pcall(error), pcall(error, nil, 2)}
----
local out = {}
for i = 1, 20 do
    out[i] = select(2, pcall(function() local t = nil return t['field' .. i] end))
end
return out
----
local t = {}
for i = 1, 300 do t['key' .. i] = {i, tostring(i)} end
for i = 1, 300, 2 do t['key' .. i] = nil end
for i = 1, 300 do t[i] = i .. 'x' end
local n = 0 for k, v in pairs(t) do n = n + 1 end
return n
----
local parts = {}
for i = 1, 200 do parts[#parts + 1] = ('%d:%s;'):format(i, ('y'):rep(i)) end
local text = table.concat(parts, ',')
local n = 0 for word in text:gmatch('%d+:') do n = n + 1 end
return {#text, n, #text:gsub('y', '%0%0'), #text:upper(), #text:reverse(), text:find('200:', 1, true)}
----
local functions = {}
for i = 1, 30 do
    functions[i] = loadstring('local a' .. i .. ' = ... local t = {a' .. i .. ', ' .. i .. '} return function() return t, a' .. i .. ' end')
end
local n = 0 for i, f in ipairs(functions) do local t = f(i)() n = n + t[1] + t[2] end
return n
----
local pieces, at = {}, 0
for i = 1, 40 do pieces[i] = 'local v' .. i .. ' = {[[' .. ('z'):rep(i * 9) .. ']], "a\\\nb", ' .. i .. '.5e1} ' end
local chunk = load(function() at = at + 1 return pieces[at] end)
return {tostring(chunk ~= nil), select(2, load(function() return ('('):rep(50) end)):sub(-30)}
----
local out = {}
for _, text in ipairs({'return ' .. ('('):rep(300) .. '1', 'x = = 1', 'for', '"\\999"', '[==[', 'goto x', 'local ' .. ('a,'):rep(250) .. 'a',
    'return ' .. ('{'):rep(250), ('do '):rep(250), 'return function(' .. ('a,'):rep(300) .. 'a) end', '\27Lua', '--[[' .. ('x'):rep(1000)}) do
    out[#out + 1] = select(2, loadstring(text))
end
return out
----
local all = {}
for i = 1, 40 do
    local c = coroutine.create(function(...) local x = coroutine.yield(...) error({x}) end)
    all[i] = c
    coroutine.resume(c, i, unpack({}, 1, i * 5))
end
local n = 0
for i, c in ipairs(all) do if not coroutine.resume(c, i) then n = n + 1 end end
return {n, coroutine.status(all[1])}
----
local c = coroutine.wrap(function() coroutine.yield(unpack({}, 1, 500)) return pcall(coroutine.yield, 1) end)
return {select('#', c()), tostring((pcall(c)))}
----
local closures = {}
for i = 1, 50 do local up = {i} closures[i] = function() up[1] = up[1] + 1 return up, i end end
local n = 0 for _, f in ipairs(closures) do n = n + f()[1] end
return n
----
local function many(...) return select('#', ...), ... end
return {many(unpack({}, 1, 1000)), (many(many(unpack({}, 1, 200))))}
----
local t = {} for i = 1, 200 do t[i] = (i * 7919) % 211 end
table.sort(t) table.sort(t, function(a, b) return a > b end)
local ok = pcall(table.sort, t, function() return true end)
local bad = pcall(table.sort, {3, 'x', 2, {}})
return {t[1], tostring(bad)}
----
redis.call('set', KEYS[1] or 'k', 'v')
local out = {}
for i = 1, 30 do
    redis.call('hset', 'h', 'f' .. i, ('v'):rep(i))
    redis.call('rpush', 'l', i, 'x' .. i)
    out[i] = redis.pcall('hgetall', 'h')
    redis.pcall('hget', 'l', 'f') redis.pcall('nope') redis.pcall('get') redis.pcall('set', 'k', {})
end
redis.call('del', 'h', 'l')
return #out
----
redis.setresp(3)
redis.call('hset', 'h', 'a', '1', 'b', '2') redis.call('sadd', 's', 'a', 'b', 'c') redis.call('zadd', 'z', '1.5', 'm')
local out = {redis.call('hgetall', 'h'), redis.call('smembers', 's'), redis.call('zscore', 'z', 'm'), redis.call('get', 'none')}
redis.call('del', 'h', 's', 'z')
return out
----
return {redis.error_reply('MY error'), redis.status_reply('fine'), {err = 'E'}, {ok = 'K'}, {double = 3.5}, {map = {a = 1, [2] = {set = {x = true}}}},
    {verbatim_string = {string = 's', format = 'txt'}}, {big_number = '123'}, true, false, 1.9, 'x', {nil, 1}}
----
return {tostring(redis.pcall('eval', 'return 1', 0)), redis.pcall('multi'), redis.pcall('blpop', 'k', 0), redis.pcall('subscribe', 'c')}
----
return {redis.sha1hex(('x'):rep(1000)), redis.sha1hex(''), redis.acl_check_cmd('set', 'k', 'v'), pcall(redis.acl_check_cmd, 'nope')}
----
local text = cjson.encode({1, 2.5, 'x\0\n"\\/', {a = {b = {true, false, cjson.null}}}, [10] = 1})
local back = cjson.decode('{"a":[1,2,{"b":null,"c":[true,false,1e3]}],"' .. ('k'):rep(100) .. '":"\\u00e9\\ud834\\udd1e"}')
return {text, #cjson.encode(back), pcall(cjson.decode, '{"a":'), pcall(cjson.encode, {[1.5] = 1}), pcall(cjson.encode, tostring)}
----
local packed = cmsgpack.pack({1, -1, 2^40, 1.5, 'text', {a = {b = 'c'}}, true, false}, nil, ('x'):rep(300))
return {#packed, #cmsgpack.unpack(packed), cmsgpack.unpack_one(packed, 0), cmsgpack.unpack_limit(packed, 2, 0), pcall(cmsgpack.unpack, packed:sub(1, 9))}
----
local packed = struct.pack('>i4<I2bBhHlLdfs', 1, 2, 3, 4, 5, 6, 7, 8, 1.5, 2.5, 'text')
return {#packed, struct.unpack('>i4<I2bBhHlLdfs', packed), struct.size('i8i4'), pcall(struct.unpack, 'i4', 'x'), pcall(struct.pack, 'i99', 1)}
----
return {bit.tohex(-1, 8), bit.tohex(1, -2147483648), bit.bor(1, 2, 4), bit.bswap(1), bit.arshift(-1, 31), pcall(bit.bnot, 'x')}
----
local out = {}
for _, f in ipairs({function() x = 1 end, function() return y end, function() redis.x = 1 end, function() string.x = 1 end,
    function() _G.x = 1 end, function() setmetatable(_G, {}) end, function() rawset(_G, 'x', 1) end, function() getmetatable('').x = 1 end,
    function() setfenv(1, {}) end, function() return getfenv(0) end, function() setmetatable(redis, nil) end, function() table.insert(redis, 1) end,
    function() return newproxy(true) end, function() return loadstring('\27Lua') end, function() return string.dump(print) end}) do
    out[#out + 1] = tostring((pcall(f)))
end
return out
----
local out = {}
for _, p in ipairs({'%', '[', '[^', '[%', '[a-', '(', ')', '%b', '%bx', '%f', '%1', '(()', ('('):rep(40), '[]', '[]]', '^*', '.-b', ('a?'):rep(10) .. ('a'):rep(10)}) do
    for _, f in ipairs({string.find, string.match, string.gsub}) do out[#out + 1] = tostring((pcall(f, ('a'):rep(20), p, '%9'))) end
    pcall(function() for _ in ('aaa'):gmatch(p) do end end)
end
return #out
----
local out = {}
for _, f in ipairs({'%', '%d', '%s', '%q', '%y', '%099d', '%100d', '%.99f', '%.100f', '%-+ #0d', '%c', '%5.5s', '%%%', '%i%i'}) do
    out[#out + 1] = select(2, pcall(string.format, f, 1e308)) out[#out + 1] = select(2, pcall(string.format, f, ('x'):rep(120)))
end
return out
