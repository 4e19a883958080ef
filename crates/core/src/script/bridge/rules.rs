//! Checks the rules of the bridge on its source.
//!
//! An error of Lua leaves a frame by `longjmp`, and no compiler can tell which call raises one. So one list contains
//! every function of Lua's interface that the bridge uses, with the marks that the manual of Lua 5.1 gives it; another
//! contains the few places where functions that raise may be called. A new call has to be added to one of these lists
//! first, with its reason.

use std::path::Path;
use std::{fs, iter};

/// Functions that never raise (`-` in the manual), those among them that catch what they raise, and types.
const NEVER: &[&str] = &[
    "lua_CFunction",
    "lua_Debug",
    "lua_State",
    "lua_atpanic",
    "lua_checkstack",
    "lua_close",
    "lua_cpcall",
    "lua_getallocf",
    "lua_getfenv",
    "lua_getmetatable",
    "lua_getstack",
    "lua_gettop",
    "lua_insert",
    "lua_iscfunction",
    "lua_isnil",
    "lua_isnumber",
    "lua_isstring",
    "lua_load",
    "lua_newstate",
    "lua_objlen",
    "lua_pcall",
    "lua_pop",
    "lua_pushboolean",
    "lua_pushlightuserdata",
    "lua_pushnil",
    "lua_pushnumber",
    "lua_pushthread",
    "lua_pushvalue",
    "lua_rawequal",
    "lua_rawget",
    "lua_rawgeti",
    "lua_remove",
    "lua_replace",
    "lua_resume",
    "lua_setfenv",
    "lua_sethook",
    "lua_setmetatable",
    "lua_settop",
    "lua_status",
    "lua_toboolean",
    "lua_tocfunction",
    "lua_tonumber",
    "lua_topointer",
    "lua_tothread",
    "lua_touserdata",
    "lua_type",
    "lua_upvalueindex",
    "lua_xmove",
    "luaL_unref",
];

/// Functions that raise only when memory is refused (`m`). That never happens while the limit is off, which is the case
/// wherever a `Stack` is.
const WITHOUT_MEMORY: &[&str] = &[
    "lua_createtable",
    "lua_dump",
    "lua_getinfo",
    "lua_newthread",
    "lua_newuserdata",
    "lua_pushcclosure",
    "lua_pushfstring",
    "lua_pushlstring",
    "lua_pushstring",
    "lua_rawseti",
    "lua_tolstring",
    "luaL_getmetafield",
    "luaL_ref",
    "luaL_where",
];

/// Files whose unsafe functions are frames of Lua's own: they may raise anything, and own nothing.
const RAISING_FILES: &[&str] = &["guard.rs", "coroutines.rs", "loops.rs", "patterns.rs"];

/// Other functions that may raise, and own nothing either.
const RAISING_FUNCTIONS: &[(&str, &str)] =
    &[("chunk.rs", "read_from_function"), ("stack.rs", "call_function"), ("machine.rs", "raise_end")];

/// Calls that could raise in general, and the reasons why they do not here.
const RULED_OUT: &[(&str, &str, &str)] = &[
    // The key is nil or one that the table has just given.
    ("stack.rs", "each_until", "lua_next"),
    // The key is neither nil nor NaN.
    ("stack.rs", "raw_set", "lua_rawset"),
    ("stack.rs", "raw_set_field", "lua_rawset"),
    ("machine.rs", "set_list", "lua_rawset"),
    // There are no finalizers.
    ("machine.rs", "collect", "lua_gc"),
];

/// Names that must not occur in a frame that an error may leave: types that own memory, and functions that create them.
const OWNING: &[&str] = &[
    "Vec",
    "String",
    "Box",
    "Rc",
    "Arc",
    "format!",
    "vec!",
    "to_vec",
    "to_owned",
    "into_owned",
    "borrow_mut",
    "collect()",
];

struct Function<'a> {
    name: &'a str,
    is_unsafe: bool,
    doc: String,
    body: String,
}

/// Returns the functions of a source file, each with its text up to the next function.
fn functions(source: &str) -> Vec<Function<'_>> {
    let mut functions: Vec<Function> = Vec::new();
    let mut doc = String::new();
    for line in source.lines().take_while(|line| *line != "#[cfg(test)]") {
        let code = line.trim_start();
        if code.starts_with("///") {
            doc.push_str(code);
        } else if let Some((name, is_unsafe)) = head(code) {
            functions.push(Function { name, is_unsafe, doc: std::mem::take(&mut doc), body: String::new() });
        } else if !code.starts_with("#[") {
            doc.clear();
        }
        if let Some(function) = functions.last_mut()
            && !code.starts_with("//")
        {
            function.body.push_str(code);
            function.body.push('\n');
        }
    }
    functions
}

/// Returns the name of a function and whether it is unsafe, if the line declares one.
fn head(line: &str) -> Option<(&str, bool)> {
    const BEFORE: &[&str] =
        &["pub", "pub(super)", "pub(in", "crate::script)", "unsafe", "extern", "\"C\"", "\"C-unwind\""];
    let (before, after) = line.split_once("fn ")?;
    let mut before = before.split_whitespace();
    before.clone().all(|word| BEFORE.contains(&word)).then_some(())?;
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    Some((name, before.any(|word| word == "unsafe")))
}

/// Returns the names of Lua's interface that a text uses. A few names end with `_` in the binding.
fn interface(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let (_, after) = rest.split_once("ffi::")?;
        rest = after;
        after.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
    .map(|name| name.trim_end_matches('_'))
    .filter(|name| name.starts_with("lua_") || name.starts_with("luaL_"))
}

/// Returns the violations of the rules in a file.
fn violations(file: &str, source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let names = |line: &str| {
        line.split(['{', '}', ',', ';']).skip(1).map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    };
    for line in source.lines().filter(|line| line.contains("use mlua_sys")) {
        let is_known =
            |name: &String| name.is_empty() || name == "self as ffi" || NEVER.contains(&name.as_str());
        if !line.starts_with("use mlua_sys::{self as ffi, ") || !names(line).iter().all(is_known) {
            found.push(format!("{file}: {line}: functions of Lua are called as `ffi::...`"));
        }
    }
    for function in functions(source) {
        let place = format!("{file}, {}", function.name);
        let may_raise = function.is_unsafe
            && (RAISING_FILES.contains(&file) || RAISING_FUNCTIONS.contains(&(file, function.name)));
        for call in interface(&function.body) {
            let is_fine = NEVER.contains(&call)
                || WITHOUT_MEMORY.contains(&call)
                || may_raise
                || RULED_OUT.contains(&(file, function.name, call));
            if !is_fine {
                found.push(format!("{place}: {call} can raise"));
            }
        }
        if may_raise {
            let owning = OWNING.iter().filter(|word| function.body.contains(**word));
            found.extend(owning.map(|word| format!("{place}: {word} in a frame that an error may leave")));
        }
        if function.is_unsafe && !function.doc.contains("# Safety") {
            found.push(format!("{place}: no `# Safety`"));
        }
    }
    found
}

#[test]
fn the_bridge_keeps_its_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/script/bridge");
    let mut calls = 0;
    for entry in fs::read_dir(&folder).expect("cannot read the source of this module") {
        let path = entry.expect("a file").path();
        let file = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if ["tests.rs", "rules.rs"].contains(&file) {
            continue;
        }
        let source = fs::read_to_string(&path).expect("a text");
        assert_eq!(violations(file, &source), [""; 0]);
        calls += functions(&source).iter().map(|function| interface(&function.body).count()).sum::<usize>();
    }
    assert!(calls > 200, "{calls} calls were found");
}

#[test]
fn a_broken_rule_is_found() {
    let broken = |file, source| violations(file, source).join("\n");
    let call = "fn f(&self) {\n    // SAFETY: none.\n    unsafe { ffi::luaL_checkstack(self.state, 1, ptr::null()) };\n}";
    assert_eq!(broken("stack.rs", call), "stack.rs, f: luaL_checkstack can raise");
    let call = "pub(super) fn each_until() {\n    unsafe { ffi::lua_getfield_(state) };\n}";
    assert_eq!(broken("stack.rs", call), "stack.rs, each_until: lua_getfield can raise");
    let import = "use mlua_sys::{self as ffi, lua_State, lua_error};";
    assert!(broken("stack.rs", import).contains("lua_error"));
    let owning = "/// # Safety\nunsafe extern \"C-unwind\" fn f() {\n    let text = Vec::new();\n}";
    assert_eq!(broken("guard.rs", owning), "guard.rs, f: Vec in a frame that an error may leave");
    assert_eq!(broken("heap.rs", "/// Links.\nunsafe fn link() {}"), "heap.rs, link: no `# Safety`");
}
