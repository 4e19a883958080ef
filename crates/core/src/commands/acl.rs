//! ACL: users and what they may run. The rules themselves are in [`acl`](crate::acl).

use super::command::*;
use super::ctx::Ctx;
use super::table;
use crate::acl::{Acl, CATEGORIES, DEFAULT_USER, Denial, Selector, User, all_rows, categories};
use crate::error::{self, Error, Outcome, c_text};
use crate::node::errands::Task;
use crate::num;
use crate::version::Version;

/// The most bits of a password of ACL GENPASS.
const MAX_PASSWORD_BITS: i64 = 4096;

/// The flags of the subcommands that show or change users.
const FOR_ADMINS: Flags = ADMIN | NOSCRIPT | LOADING | STALE;

const FOR_EVERYONE: Flags = NOSCRIPT | LOADING | STALE;

pub const COMMANDS: &[Command] = &[Command {
    name: "acl",
    arity: -2,
    since: "6.0.0",
    summary: "Manages users and their permissions.",
    complexity: "Depends on subcommand.",
    subcommands: &[
        Command {
            name: "acl|list",
            arity: 2,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Lists users with their rules, as in an ACL file.",
            complexity: "O(N). Where N is the number of configured users.",
            run: list,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|load",
            arity: 2,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Reads users from the ACL file.",
            complexity: "O(N). Where N is the number of configured users.",
            run: load,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|log",
            arity: -2,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Lists refused commands and failed logins.",
            complexity: "O(N) with N being the number of entries shown.",
            run: log,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|getuser",
            arity: 3,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Describes a user.",
            complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
            run: getuser,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|deluser",
            arity: -3,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Deletes users and disconnects their clients.",
            complexity: "O(1) amortized time considering the typical user.",
            changes: &[Change {
                since: ("7.2.0", ""),
                apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:all_succeeded"],
            }],
            run: deluser,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|dryrun",
            arity: -4,
            since: "7.0.0",
            flags: FOR_ADMINS,
            summary: "Tells whether a user may run a command, without running it.",
            complexity: "O(1).",
            run: dryrun,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|users",
            arity: 2,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Lists the names of users.",
            complexity: "O(N). Where N is the number of configured users.",
            run: users,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|setuser",
            arity: -3,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Creates a user or changes the user's rules.",
            complexity: "O(N). Where N is the number of rules provided.",
            changes: &[Change {
                since: ("7.2.0", ""),
                apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:all_succeeded"],
            }],
            run: setuser,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|save",
            arity: 2,
            since: "6.0.0",
            flags: FOR_ADMINS,
            summary: "Writes users to the ACL file.",
            complexity: "O(N). Where N is the number of configured users.",
            changes: &[Change {
                since: ("7.2.0", ""),
                apply: |row| row.tips = &["request_policy:all_nodes", "response_policy:all_succeeded"],
            }],
            run: save,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|genpass",
            arity: -2,
            since: "6.0.0",
            flags: FOR_EVERYONE,
            summary: "Generates a random password.",
            complexity: "O(1)",
            run: genpass,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|whoami",
            arity: 2,
            since: "6.0.0",
            flags: FOR_EVERYONE,
            summary: "Gives the name of the connection's user.",
            complexity: "O(1)",
            run: whoami,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|help",
            arity: 2,
            since: "6.0.0",
            flags: LOADING | STALE,
            summary: "Explains the subcommands.",
            complexity: "O(1)",
            run: super::help::reply,
            ..Command::of(Group::Server)
        },
        Command {
            name: "acl|cat",
            arity: -2,
            since: "6.0.0",
            flags: FOR_EVERYONE,
            summary: "Lists the categories, or the commands of one.",
            complexity: "O(1) since the categories and commands are a fixed set.",
            run: cat,
            ..Command::of(Group::Server)
        },
    ],
    ..Command::of(Group::Server)
}];

fn setuser(ctx: &mut Ctx) -> Outcome {
    let (name, rules) = (ctx.argv[2], &ctx.argv[3..]);
    if !User::is_valid_name(name) {
        return Err(Error::new("ERR Usernames can't contain spaces or null characters"));
    }
    let context = ctx.node.acl_context();
    let user = match ctx.node.acl.user(name) {
        Some(user) => user.with_rules(rules, context),
        None => User::new(name, context).with_rules(rules, context),
    };
    let user = user.map_err(|why| Error::owned([b"ERR ", &why.explain()[..]].concat()))?;
    ctx.node.replace_user(user);
    ctx.reply.ok();
    Ok(())
}

fn deluser(ctx: &mut Ctx) -> Outcome {
    let names = &ctx.argv[2..];
    if names.contains(&DEFAULT_USER) {
        return Err(Error::new("ERR The 'default' user cannot be removed"));
    }
    let deleted = names.iter().filter(|name| ctx.node.remove_user(name)).count();
    ctx.reply.int(deleted as i64);
    Ok(())
}

fn getuser(ctx: &mut Ctx) -> Outcome {
    let Some(user) = ctx.node.acl.user(ctx.argv[2]).cloned() else {
        ctx.reply.null();
        return Ok(());
    };
    let has_databases = has_databases(ctx.version());
    let reply = &mut *ctx.reply;
    reply.map(6 + has_databases as usize);
    reply.bulk(b"flags");
    let flags = user.flags();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    let hashes = user.password_hashes();
    reply.array(hashes.len());
    hashes.for_each(|hash| reply.bulk(hash));
    describe_selector(ctx, user.root_selector());
    ctx.reply.bulk(b"selectors");
    let selectors = user.further_selectors();
    ctx.reply.array(selectors.len());
    for selector in selectors {
        ctx.reply.map(3 + has_databases as usize);
        describe_selector(ctx, selector);
    }
    Ok(())
}

/// Returns whether selectors name the databases that they permit. Rules for some of them only are not supported.
fn has_databases(version: Version) -> bool {
    version.is_valkey_since(Version::Valkey9_1)
}

fn describe_selector(ctx: &mut Ctx, selector: &Selector) {
    for (name, text) in
        [("commands", selector.commands()), ("keys", selector.keys()), ("channels", selector.channels())]
    {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(&text);
    }
    if has_databases(ctx.version()) {
        ctx.reply.bulk(b"databases");
        ctx.reply.bulk(b"alldbs");
    }
}

fn list(ctx: &mut Ctx) -> Outcome {
    let users = ctx.node.acl.users();
    ctx.reply.array(users.len());
    users.for_each(|user| ctx.reply.bulk(&user.describe()));
    Ok(())
}

fn users(ctx: &mut Ctx) -> Outcome {
    let users = ctx.node.acl.users();
    ctx.reply.array(users.len());
    users.for_each(|user| ctx.reply.bulk(user.name()));
    Ok(())
}

fn whoami(ctx: &mut Ctx) -> Outcome {
    let user = ctx.session().user.clone();
    ctx.reply.bulk(user.name());
    Ok(())
}

fn cat(ctx: &mut Ctx) -> Outcome {
    let wanted = match ctx.argv {
        [_, _] => {
            ctx.reply.array(CATEGORIES.len());
            CATEGORIES.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
            return Ok(());
        }
        [_, _, name] => c_text(name),
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    };
    let known = CATEGORIES.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(wanted));
    let Some(category) = known else {
        let shown = &wanted[..wanted.len().min(128)];
        return Err(Error::owned([b"ERR Unknown category '", shown, b"'"].concat()));
    };
    let rows = all_rows(ctx.version()).iter().filter(|row| categories(row).any(|name| name == *category));
    let names: Vec<&str> = rows.map(|row| row.name).collect();
    ctx.reply.array(names.len());
    names.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
    Ok(())
}

fn genpass(ctx: &mut Ctx) -> Outcome {
    let bits = match ctx.argv.len() {
        2 => 256,
        3 => ctx.int(2)?,
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    };
    if !(1..=MAX_PASSWORD_BITS).contains(&bits) {
        return Err(Error::owned(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
             {MAX_PASSWORD_BITS}"
        )));
    }
    let password = ctx.node.rng.hex((bits as usize).div_ceil(4));
    ctx.reply.bulk(password.as_bytes());
    Ok(())
}

fn log(ctx: &mut Ctx) -> Outcome {
    let count = match ctx.argv {
        [_, _] => 10,
        [_, _, word] if word.eq_ignore_ascii_case(b"RESET") => {
            ctx.node.acl.log.entries.clear();
            ctx.reply.ok();
            return Ok(());
        }
        [_, _, word] => num::parse_i64(word).ok_or(error::NOT_AN_INTEGER)?,
        _ => return Err(error::subcommand_syntax(ctx.argv)),
    };
    let (now_ms, since_7_2) = (ctx.now().wall_ms(), ctx.version() >= Version::V7_2);
    let entries = &ctx.node.acl.log.entries;
    let shown = usize::try_from(count).unwrap_or(0).min(entries.len());
    let reply = &mut *ctx.reply;
    reply.array(shown);
    for entry in entries.iter().take(shown) {
        reply.map(if since_7_2 { 10 } else { 7 });
        reply.bulk(b"count");
        reply.int(entry.count as i64);
        for (name, text) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.context.as_bytes()),
            ("object", &entry.object),
            ("username", &entry.username),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        reply.bulk(b"age-seconds");
        reply.double((now_ms - entry.updated_ms) as f64 / 1000.0);
        reply.bulk(b"client-info");
        reply.bulk(entry.client.as_bytes());
        if since_7_2 {
            for (name, number) in [
                ("entry-id", entry.id as i64),
                ("timestamp-created", entry.created_ms),
                ("timestamp-last-updated", entry.updated_ms),
            ] {
                reply.bulk(name.as_bytes());
                reply.int(number);
            }
        }
    }
    Ok(())
}

fn dryrun(ctx: &mut Ctx) -> Outcome {
    let (name, call) = (ctx.argv[2], &ctx.argv[3..]);
    let Some(user) = ctx.node.acl.user(name).cloned() else {
        return Err(Error::owned([b"ERR User '", c_text(name), b"' not found"].concat()));
    };
    let version = ctx.version();
    let Some(row) = table::find(call, version) else {
        return Err(Error::owned([b"ERR Command '", c_text(call[0]), b"' not found"].concat()));
    };
    if !row.accepts(call.len(), version) {
        return Err(error::wrong_arity(row.name));
    }
    let Err(denial) = user.check(row, call, ctx.version()) else {
        ctx.reply.ok();
        return Ok(());
    };
    // Before 7.2 a C string ends at a NUL.
    let shown = |word: &'_ [u8]| if version >= Version::V7_2 { word.to_vec() } else { c_text(word).to_vec() };
    let mut text = match version >= Version::V7_2 {
        true => [b"User ", user.name()].concat(),
        false => b"This user".to_vec(),
    };
    let (verb, object, kind) = match denial {
        Denial::Command => (" has no permissions to run the '", row.name.as_bytes().to_vec(), "' command"),
        Denial::Key(at) => (" has no permissions to access the '", shown(call[at]), "' key"),
        Denial::Channel(at) => (" has no permissions to access the '", shown(call[at]), "' channel"),
    };
    text.extend([verb.as_bytes(), &object, kind.as_bytes()].concat());
    ctx.reply.bulk(&text);
    Ok(())
}

/// Fails if the server has no ACL file.
fn check_file(ctx: &Ctx) -> Outcome {
    if ctx.node.config.get("aclfile").is_some_and(|path| !path.is_empty()) {
        return Ok(());
    }
    let product = if ctx.version().is_valkey() { "" } else { "Redis " };
    Err(Error::owned(format!(
        "ERR This {product}instance is not configured to use an ACL file. You may want to specify users via the ACL \
         SETUSER command and then issue a CONFIG REWRITE (assuming you have a {product}configuration file set) in \
         order to store users in the {product}configuration."
    )))
}

/// Makes the users those of the ACL file. The driver writes it, if it has files.
fn save(ctx: &mut Ctx) -> Outcome {
    check_file(ctx)?;
    ctx.node.save_users();
    ctx.answer_after(ctx.node.config.has_driver.then_some(Task::SaveUsers));
    Ok(())
}

/// Replaces the users by those of the ACL file: as the driver reads it or, without files, as it was read or saved.
fn load(ctx: &mut Ctx) -> Outcome {
    check_file(ctx)?;
    if !ctx.node.config.has_driver {
        let loaded = Acl::new(&ctx.node.config);
        ctx.node.load_users(&loaded);
    }
    ctx.answer_after(ctx.node.config.has_driver.then_some(Task::LoadUsers));
    Ok(())
}
