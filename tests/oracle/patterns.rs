//! Random patterns and tables: the library functions that Redlatch implements itself give a real server's results and errors.

use redlatch_core::rng::Rng;

use crate::support::server::Server;

/// Runs the function that each case names on its arguments, and shows all results or the error.
const RUN: &str = r#"
local function show(...)
    local out = {}
    for i = 1, select('#', ...) do
        local value = select(i, ...)
        out[i] = type(value) .. ':' .. tostring(value)
    end
    return table.concat(out, '|')
end
local runs = {
    find = function(s, p, x) return string.find(s, p, tonumber(x)) end,
    plain = function(s, p, x) return string.find(s, p, tonumber(x), true) end,
    match = function(s, p, x) return string.match(s, p, tonumber(x)) end,
    gmatch = function(s, p)
        local all = {}
        for a, b in string.gmatch(s, p) do all[#all + 1] = show(a, b) end
        return unpack(all)
    end,
    gsub = function(s, p, x) return string.gsub(s, p, x) end,
    gsubn = function(s, p, x) return string.gsub(s, p, '<%0>', tonumber(x)) end,
    gsubf = function(s, p, x)
        return string.gsub(s, p, function(a, b) if a == 'a' then return nil elseif a == 'b' then return {} else return a .. show(b) end end)
    end,
    gsubt = function(s, p, x) return string.gsub(s, p, {a = 'X', b = 1, c = false, [''] = '-'}) end,
    rep = function(s, p, x) return string.rep(s, tonumber(x)) end,
    concat = function(s, p, x) return table.concat({s, p, 1, x, 2.5}, p, tonumber(x)) end,
    insert = function(s, p, x) local t = {s, p, x} table.insert(t, tonumber(x) or 2, s) return unpack(t, 1, 6) end,
    remove = function(s, p, x) local t = {s, p, x, 4} return table.remove(t, tonumber(x)), unpack(t, 1, 5) end,
    sort = function(s, p, x)
        local t, log = {}, {}
        for c in s:gmatch('.') do t[#t + 1] = c end
        local kind = #p % 4
        if kind == 0 then table.sort(t)
        elseif kind == 1 then table.sort(t, function(a, b) log[#log + 1] = a .. b return a > b end)
        elseif kind == 2 then table.sort(t, function(a, b) log[#log + 1] = a .. b return true end)
        else t[#t + 1] = 1 table.sort(t) end
        return table.concat(t), table.concat(log)
    end,
}
local out = {}
for i = 1, #ARGV, 4 do
    out[#out + 1] = show(pcall(runs[ARGV[i]], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]))
end
return out
"#;

const FUNCTIONS: &[&str] = &[
    "find", "find", "plain", "match", "match", "gmatch", "gsub", "gsub", "gsubn", "gsubf", "gsubt", "rep",
    "concat", "insert", "remove", "sort",
];

/// Parts of patterns, valid and not.
const PARTS: &[&str] = &[
    "a", "b", "c", "x", ".", "%a", "%d", "%s", "%S", "%w", "%W", "%p", "%u", "%l", "%c", "%x", "%z", "%.",
    "%%", "[ab]", "[^a]", "[a-c]", "[%a_]", "[]]", "[^]a]", "[a-]", "[%]]", "[a%-c]", "[", "%", "(", ")",
    "()", "(a*)", "(.-)", "(a", "b)", "%1", "%2", "%0", "%b()", "%bab", "%b", "%bx", "%f[a]", "%f[%w]", "%f",
    "%fa", "^", "$", "*", "+", "-", "?", "a*", "a+", "a-", "a?", ".*", ".-", ".+", "\0", "[\0]", "-",
    "\u{e9}", "%q",
];

fn text(rng: &mut Rng, parts: &[&str], most: usize) -> Vec<u8> {
    (0..rng.below(most + 1)).flat_map(|_| parts[rng.below(parts.len())].bytes()).collect()
}

#[test]
fn patterns_and_tables_give_the_same_results_and_errors() {
    const ROUNDS: usize = 400;
    const CASES: usize = 300;
    let Some(theirs) = Server::redis("7.0", &[]) else { return };
    let ours = Server::redlatch("7.0", &[]);
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    let mut rng = Rng::new(20_110);
    let subject =
        ["a", "b", "c", "x", "A", "1", " ", "(", ")", "_", "-", "ab", "aa", "\0", "\u{e9}", "\n", "]"];
    let extra = ["", "1", "2", "0", "-1", "-3", "7", "%1", "%0-", "<%2>", "%", "%%", "x", "99", "%a"];
    for round in 0..ROUNDS {
        let mut request: Vec<Vec<u8>> = vec![b"EVAL".to_vec(), RUN.as_bytes().to_vec(), b"0".to_vec()];
        for _ in 0..CASES {
            request.push(FUNCTIONS[rng.below(FUNCTIONS.len())].as_bytes().to_vec());
            request.push(text(&mut rng, &subject, 12));
            request.push(text(&mut rng, PARTS, 6));
            request.push(text(&mut rng, &extra, 1));
        }
        let (got, expected) = (ours.call(&request), theirs.call(&request));
        if got != expected {
            let (got, expected) = (String::from_utf8_lossy(&got), String::from_utf8_lossy(&expected));
            let at = got.lines().zip(expected.lines()).position(|(a, b)| a != b).unwrap_or(0);
            let case: Vec<String> = request[3..][(at / 2).saturating_sub(1) * 4..]
                .iter()
                .take(8)
                .map(|arg| arg.escape_ascii().to_string())
                .collect();
            let line = |text: &str| text.lines().nth(at).unwrap_or_default().to_owned();
            panic!("round {round}, near {case:?}:\n  ours:   {}\n  theirs: {}", line(&got), line(&expected));
        }
    }
}
