//! The modules that a server has without being asked, which HELLO and MODULE LIST report.

use super::command::*;
use super::ctx::Ctx;
use crate::error::{Error, Outcome};
use crate::version::Version;
use crate::wire::Reply;

const LOADS: Flags = ADMIN | NOSCRIPT | NO_ASYNC_LOADING;

pub const COMMANDS: &[Command] = &[Command {
    name: "module",
    arity: -2,
    since: "4.0.0",
    summary: "Commands for modules.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "module|help",
            arity: 2,
            since: "5.0.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
            ..Command::of(Group::Server)
        },
        Command {
            name: "module|list",
            arity: 2,
            since: "4.0.0",
            flags: ADMIN | NOSCRIPT,
            tips: &["nondeterministic_output_order"],
            summary: "Lists the modules.",
            complexity: "O(N)",
            run: module_list,
            ..Command::of(Group::Server)
        },
        Command {
            name: "module|load",
            arity: -3,
            since: "4.0.0",
            flags: LOADS,
            summary: "Loads a module; always fails.",
            complexity: "O(1)",
            run: module_load,
            ..Command::of(Group::Server)
        },
        Command {
            name: "module|loadex",
            arity: -3,
            since: "7.0.0",
            flags: LOADS,
            summary: "Loads a module with settings; always fails.",
            complexity: "O(1)",
            run: module_load,
            ..Command::of(Group::Server)
        },
        Command {
            name: "module|unload",
            arity: 3,
            since: "4.0.0",
            flags: LOADS,
            summary: "Unloads a module.",
            complexity: "O(1)",
            run: module_unload,
            ..Command::of(Group::Server)
        },
    ],
    ..Command::of(Group::Server)
}];

/// Fails as for a file that is no module: native code is never loaded.
fn module_load(_: &mut Ctx) -> Outcome {
    Err(Error::new("ERR Error loading the extension. Please check the server logs."))
}

fn module_unload(ctx: &mut Ctx) -> Outcome {
    let is_built_in = built_in(ctx.version()).iter().any(|module| module.name.as_bytes() == ctx.argv[2]);
    Err(Error::new(match is_built_in {
        true => "ERR Error unloading module: the module can't be unloaded",
        false => "ERR Error unloading module: no such module with that name",
    }))
}

fn module_list(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    list(ctx.reply, version);
    Ok(())
}

/// A built-in module.
pub struct Module {
    pub name: &'static str,
    path: &'static str,
    /// What INFO says the module can handle.
    pub options: &'static str,
}

/// Returns the built-in modules of a release.
pub fn built_in(version: Version) -> &'static [Module] {
    const VECTOR_SET: Module =
        Module { name: "vectorset", path: "", options: "handle-io-errors|handle-repl-async-load" };
    const LUA: Module =
        Module { name: "lua", path: "lua", options: "handle-repl-async-load|handle-atomic-slot-migration" };
    match version {
        version if version >= Version::V8_0 => &[VECTOR_SET],
        version if version.is_valkey_since(Version::Valkey9_1) => &[LUA],
        _ => &[],
    }
}

/// Writes the list of modules.
pub fn list(reply: &mut Reply, version: Version) {
    let modules = built_in(version);
    reply.array(modules.len());
    for Module { name, path, .. } in modules {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(name.as_bytes());
        reply.bulk(b"ver");
        reply.int(1);
        reply.bulk(b"path");
        reply.bulk(path.as_bytes());
        reply.bulk(b"args");
        reply.array(0);
    }
}
