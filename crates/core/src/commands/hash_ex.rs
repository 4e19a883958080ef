//! HGETDEL, HGETEX and HSETEX, which read or set fields of a hash together with their expiry.

use super::command::*;
use super::ctx::Ctx;
use super::hash_fields::{self, Existence, Family, NewExpiry};
use crate::error::Outcome;
use crate::node::notify::Class;
use crate::store::{Hash, Limits};

pub const COMMANDS: &[Command] = &[
    Command {
        name: "hgetdel",
        arity: -5,
        since: "8.0.0",
        since_valkey: "9.1.0",
        flags: WRITE | FAST,
        keys: &[key(&["RW", "access", "delete"], 1)],
        summary: "Gives the values of fields and deletes them.",
        complexity: "O(N)",
        run: hgetdel,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hgetex",
        arity: -5,
        since: "8.0.0",
        since_valkey: "9.0.0",
        flags: WRITE | FAST,
        keys: &[KeySpec {
            flags: &["RW", "access", "update"],
            notes: "RW and UPDATE because it changes the TTL",
            begin: Begin::Index(1),
            find: Find::Range { last: 0, step: 1, limit: 0 },
        }],
        summary: "Gives the values of fields and sets or removes their expiry.",
        complexity: "O(N)",
        changes: &[Change { since: (NEVER, "9.0.0"), apply: |row| row.keys = HGETEX_IN_VALKEY }],
        run: hgetex,
        ..Command::of(Group::Hash)
    },
    Command {
        name: "hsetex",
        arity: -6,
        since: "8.0.0",
        since_valkey: "9.0.0",
        flags: WRITE | DENYOOM | FAST,
        keys: &[key(&["RW", "update"], 1)],
        summary: "Sets fields and their expiry, with a condition if asked.",
        complexity: "O(N)",
        changes: &[Change { since: (NEVER, "9.0.0"), apply: |row| row.keys = HSETEX_IN_VALKEY }],
        run: hsetex,
        ..Command::of(Group::Hash)
    },
];

const HGETEX_IN_VALKEY: &[KeySpec] = &[key(&["RW", "access", "update"], 1)];
const HSETEX_IN_VALKEY: &[KeySpec] = &[key(&["RW", "insert"], 1)];

fn hgetdel(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let now_ms = ctx.now().wall_ms();
    let fields = hash_fields::parse_fields(ctx, 2);
    if ctx.version().is_valkey() {
        fields.clone()?;
    }
    let edit = ctx.edit::<Hash>(key)?;
    let fields = fields?;
    let Some(mut edit) = edit else {
        ctx.reply.array(fields.len());
        fields.iter().for_each(|_| ctx.reply.null());
        return Ok(());
    };
    let hash = &mut *edit;
    let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(fields.len());
    for field in fields {
        let value = hash.get(field, now_ms).map(<[u8]>::to_vec);
        if value.is_some() {
            hash.remove(field);
        }
        values.push(value);
    }
    edit.done_if_any("hdel", values.iter().flatten().count());
    ctx.reply.array(values.len());
    values.iter().for_each(|value| ctx.reply.bulk_or_null(value.as_deref()));
    Ok(())
}

fn hgetex(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let now_ms = ctx.now().wall_ms();
    let passed = passed_event(ctx);
    let arguments = hash_fields::parse(ctx, first_option(ctx), Family::Get);
    if ctx.version().is_valkey() {
        arguments.clone()?;
    }
    let edit = ctx.edit::<Hash>(key)?;
    let mut arguments = arguments?;
    if let Some(error) = arguments.late_error.take() {
        return Err(error);
    }
    let fields = arguments.fields;
    let Some(mut edit) = edit else {
        ctx.reply.array(fields.len());
        fields.iter().for_each(|_| ctx.reply.null());
        return Ok(());
    };
    let (hash, limits) = edit.with_limits();
    if arguments.expiry != NewExpiry::None {
        hash.prepare_expiries(limits);
    }
    let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(fields.len());
    let mut changed = 0;
    for field in fields {
        let Some(value) = hash.get(field, now_ms).map(<[u8]>::to_vec) else {
            values.push(None);
            continue;
        };
        values.push(Some(value));
        changed += match arguments.expiry {
            NewExpiry::At(end_ms) if end_ms <= now_ms => hash.remove(field),
            NewExpiry::At(end_ms) => hash.set_expiry_in(field, Some(end_ms), limits),
            NewExpiry::Persist => {
                let had_expiry = hash.expiry(field).flatten().is_some();
                hash.set_expiry_in(field, None, limits);
                had_expiry
            }
            NewExpiry::None | NewExpiry::Keep => false,
        } as usize;
    }
    let event = match arguments.expiry {
        NewExpiry::At(end_ms) if end_ms <= now_ms => passed,
        NewExpiry::At(_) => "hexpire",
        _ => "hpersist",
    };
    edit.done_if_any(event, changed);
    ctx.reply.array(values.len());
    values.iter().for_each(|value| ctx.reply.bulk_or_null(value.as_deref()));
    Ok(())
}

/// Returns the index of the first option. Valkey takes a key of the name FIELDS for the keyword as well.
fn first_option(ctx: &Ctx) -> usize {
    let is_keyword = ctx.version().is_valkey() && ctx.argv[1].eq_ignore_ascii_case(b"FIELDS");
    if is_keyword { 1 } else { 2 }
}

/// Returns the event of fields that are deleted because their new expiry has passed.
pub fn passed_event(ctx: &Ctx) -> &'static str {
    if ctx.version().is_valkey() { "hexpired" } else { "hdel" }
}

fn hsetex(ctx: &mut Ctx) -> Outcome {
    let key = ctx.argv[1];
    let now_ms = ctx.now().wall_ms();
    let mut arguments = hash_fields::parse(ctx, first_option(ctx), Family::Set)?;
    let (pairs, _) = arguments.fields.as_chunks::<2>();
    let hash = ctx.edit::<Hash>(key)?;
    let has = |[field, _]: &[&[u8]; 2]| hash.as_ref().is_some_and(|hash| hash.contains(field, now_ms));
    let allowed = match arguments.key_existence {
        Existence::Any => true,
        Existence::All => hash.is_some(),
        Existence::None => hash.is_none(),
    };
    if let Some(error) = arguments.late_error.take().filter(|_| allowed) {
        return Err(error);
    }
    let allowed = allowed
        && match arguments.fields_existence {
            Existence::Any => true,
            Existence::All => pairs.iter().all(has),
            Existence::None => !pairs.iter().any(has),
        };
    if allowed {
        set_fields(ctx, key, pairs, arguments.expiry)?;
    }
    ctx.reply.int(allowed as i64);
    Ok(())
}

fn set_fields(ctx: &mut Ctx, key: &[u8], pairs: &[[&[u8]; 2]], expiry: NewExpiry) -> Outcome {
    let now_ms = ctx.now().wall_ms();
    let has_passed = matches!(expiry, NewExpiry::At(end_ms) if end_ms <= now_ms);
    let keeps_encoding = has_passed && ctx.version().is_valkey();
    let mut edit = ctx.edit_or_create::<Hash>(key)?;
    let (hash, limits) = edit.with_limits();
    // Valkey does not store fields that have expired already.
    let unlimited = Limits {
        hash_max_listpack_entries: usize::MAX,
        hash_max_listpack_value: usize::MAX,
        ..limits.clone()
    };
    let limits = if keeps_encoding { &unlimited } else { limits };
    hash.expect(pairs.len(), limits);
    if let NewExpiry::At(_) = expiry {
        hash.prepare_expiries(limits);
    }
    for [field, value] in pairs {
        match expiry {
            NewExpiry::Keep => hash.set_keeping_expiry(field, value, limits),
            _ => hash.set(field, value, limits),
        };
        if let NewExpiry::At(end_ms) = expiry
            && !has_passed
        {
            hash.set_expiry_in(field, Some(end_ms), limits);
        }
    }
    edit.done("hset", pairs.len());
    if matches!(expiry, NewExpiry::At(_)) && (!has_passed || ctx.version().is_valkey()) {
        ctx.notify(key, Class::HASH, "hexpire");
    }
    if has_passed {
        let passed = passed_event(ctx);
        if let Some(mut edit) = ctx.edit::<Hash>(key)? {
            let hash = &mut *edit;
            let removed = pairs.iter().filter(|[field, _]| hash.remove(field)).count();
            edit.done_if_any(passed, removed);
        }
    }
    Ok(())
}
