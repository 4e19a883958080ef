//! Finds rules and gates that can never act, so that a test does not wait for a fault that never comes.

use super::action::{Action, Position};
use super::args::{SimError, syntax};
use super::matching::{Clause, Match};
use redlatch_core::commands::table;
use redlatch_core::glob;
use redlatch_core::version::Version;

/// The commands that run scripts.
const EVALS: [&[u8]; 4] = [b"eval", b"evalsha", b"eval_ro", b"evalsha_ro"];

impl Match {
    /// Checks that no two clauses exclude each other.
    ///
    /// # Errors
    /// Names the two clauses.
    pub(super) fn check_clauses(&self) -> Result<(), SimError> {
        for (at, one) in self.clauses.iter().enumerate() {
            for other in &self.clauses[at + 1..] {
                if exclude(one, other) || exclude(other, one) {
                    return Err(syntax(format!(
                        "{one} and {other} exclude each other: this could never match"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Checks that an action can act on a request that matches.
    ///
    /// # Errors
    /// Names the action and the clause.
    pub fn check_action(&self, action: &Action) -> Result<(), SimError> {
        let needs_script = matches!(action, Action::FailSubcall(..) | Action::Rewrite(Position::Argv(_), _));
        match self.clauses.iter().find(|clause| needs_script && !allows_scripts(clause)) {
            Some(clause) => Err(syntax(format!(
                "{action} acts on scripts, and {clause} matches none: this could never act"
            ))),
            None => Ok(()),
        }
    }
}

/// Returns whether nothing can match both clauses.
fn exclude(one: &Clause, other: &Clause) -> bool {
    match (one, other) {
        (Clause::Conn(one), Clause::Conn(other)) => one != other,
        (Clause::Node(one), Clause::Node(other)) => one != other,
        (Clause::Nth(one), Clause::Nth(other)) => one != other,
        (Clause::Name(one), Clause::Name(other))
        | (Clause::Owner(one), Clause::Owner(other))
        | (Clause::Cmd(one), Clause::Cmd(other))
        | (Clause::Script(one), Clause::Script(other)) => are_apart(one, other),
        (Clause::Sha(one), Clause::Sha(other)) => !one.starts_with(other) && !other.starts_with(one),
        (Clause::Arg(at, one), Clause::Arg(other_at, other))
        | (Clause::Argv(at, one), Clause::Argv(other_at, other)) => at == other_at && are_apart(one, other),
        (Clause::Cmd(_), Clause::Script(_) | Clause::Owner(_) | Clause::Sha(_) | Clause::Argv(..)) => {
            !allows_scripts(one)
        }
        (Clause::Cmd(name), Clause::Channel(_)) => {
            !glob::is_pattern(name) && !name.ends_with(b"subscribe") && !name.ends_with(b"publish")
        }
        (Clause::Cmd(name), Clause::Key(_)) => {
            let row = table::find_by_name(name, Version::V7_4);
            row.is_some_and(|row| row.keys.is_empty() && row.subcommands.is_empty())
        }
        (Clause::Channel(_), Clause::Script(_) | Clause::Owner(_) | Clause::Sha(_) | Clause::Argv(..)) => {
            true
        }
        _ => false,
    }
}

/// Returns whether no text matches both globs. Two patterns are not compared.
fn are_apart(one: &[u8], other: &[u8]) -> bool {
    match (glob::is_pattern(one), glob::is_pattern(other)) {
        (false, false) => one != other,
        (false, true) => !glob::matches(other, one, false),
        (true, false) => !glob::matches(one, other, false),
        (true, true) => false,
    }
}

/// Returns whether a request that runs a script can match a clause.
fn allows_scripts(clause: &Clause) -> bool {
    match clause {
        Clause::Cmd(name) => EVALS.iter().any(|eval| glob::matches(name, eval, false)),
        Clause::Channel(_) => false,
        _ => true,
    }
}
