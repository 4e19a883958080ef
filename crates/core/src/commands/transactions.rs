//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use std::collections::VecDeque;

use super::command::*;
use super::ctx::{Ctx, Origin};
use crate::error::{Error, Outcome};
use crate::node::Node;
use crate::node::permissions::Source;
use crate::node::session::{Multi, OwnedArgs, SessionId};
use crate::wire::Reply;

pub const COMMANDS: &[Command] = &[
    Command {
        name: "discard",
        arity: 1,
        since: "2.0.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        summary: "Forgets the commands of a transaction.",
        complexity: "O(N)",
        run: discard,
        ..Command::of(Group::Transactions)
    },
    Command {
        name: "exec",
        arity: 1,
        since: "1.2.0",
        flags: NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG,
        summary: "Runs the commands of a transaction.",
        complexity: "Depends on commands in the transaction",
        run: exec,
        ..Command::of(Group::Transactions)
    },
    Command {
        name: "multi",
        arity: 1,
        since: "1.2.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        summary: "Begins a transaction.",
        complexity: "O(1)",
        changes: NO_MULTI_IN_VALKEY,
        run: multi,
        ..Command::of(Group::Transactions)
    },
    Command {
        name: "unwatch",
        arity: 1,
        since: "2.2.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        summary: "Forgets all watched keys.",
        complexity: "O(1)",
        run: unwatch,
        ..Command::of(Group::Transactions)
    },
    Command {
        name: "watch",
        arity: -2,
        since: "2.2.0",
        flags: NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        keys: &[keys(&["RO"], 1, -1, 1)],
        summary: "Makes the next transaction depend on keys staying unchanged.",
        complexity: "O(1) for every key.",
        changes: NO_MULTI_IN_VALKEY,
        run: watch,
        ..Command::of(Group::Transactions)
    },
];

const NO_MULTI_IN_VALKEY: &[Change] =
    &[Change { since: (NEVER, "8.0.0"), apply: |row| row.flags |= NO_MULTI }];

fn multi(ctx: &mut Ctx) -> Outcome {
    let session = ctx.session();
    if session.multi.is_some() {
        return Err(Error::new("ERR MULTI calls can not be nested"));
    }
    session.multi = Some(Multi::default());
    ctx.reply.ok();
    Ok(())
}

fn discard(ctx: &mut Ctx) -> Outcome {
    if ctx.session().multi.take().is_none() {
        return Err(Error::new("ERR DISCARD without MULTI"));
    }
    ctx.node.unwatch(ctx.id);
    ctx.reply.ok();
    Ok(())
}

fn watch(ctx: &mut Ctx) -> Outcome {
    if ctx.session().multi.is_some() {
        return Err(Error::new("ERR WATCH inside MULTI is not allowed"));
    }
    if ctx.session().watch_broken {
        ctx.reply.ok();
        return Ok(());
    }
    for key in &ctx.argv[1..] {
        // Removes a key that has already expired, so that its later removal cannot break the watch.
        ctx.find_quietly(key);
        ctx.node.watch(ctx.id, key);
    }
    ctx.reply.ok();
    Ok(())
}

fn unwatch(ctx: &mut Ctx) -> Outcome {
    ctx.node.unwatch(ctx.id);
    ctx.reply.ok();
    Ok(())
}

fn exec(ctx: &mut Ctx) -> Outcome {
    let session = ctx.session();
    let Some(multi) = session.multi.take() else {
        return Err(Error::new("ERR EXEC without MULTI"));
    };
    let broken = session.watch_broken;
    ctx.node.unwatch(ctx.id);
    if multi.refused {
        return Err(Error::new("EXECABORT Transaction discarded because of previous errors."));
    }
    if broken {
        ctx.reply.null_array();
        return Ok(());
    }
    ctx.reply.array(multi.commands.len());
    ctx.node.run_queued(ctx.id, multi.commands.into(), ctx.reply);
    Ok(())
}

impl Node {
    /// Runs queued commands one after the other. If a script among them is suspended, the rest waits until it ends.
    pub fn run_queued(&mut self, id: SessionId, mut queue: VecDeque<OwnedArgs>, reply: &mut Reply) {
        while let Some(owned) = queue.pop_front() {
            let argv = owned.args();
            let Some(command) = self.config.find_command(&argv) else { continue };
            let start = reply.len();
            let permitted = self.authorize(id, command, &argv, Source::Exec);
            let outcome = permitted.and_then(|()| self.call(id, command, &argv, reply, Origin::Exec));
            if let Err(error) = outcome {
                reply.truncate(start);
                self.write_error(reply, &error);
            }
            if self.scripts.is_running() {
                self.scripts.run_after(queue);
                return;
            }
        }
    }
}
