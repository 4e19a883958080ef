//! Mutants that no client can distinguish from the original.
//!
//! `equivalents.toml` is kept by hand: an entry names a script by class, method and the beginning of its SHA-1, and
//! each mutant by operator and position. An entry for another text of the script does not count.

use std::collections::BTreeMap;

use super::Mutant;

/// The list.
pub struct Equivalents {
    /// By script, then by operator and position.
    reasons: BTreeMap<(String, String), toml::Table>,
}

impl Equivalents {
    /// Returns the list of this crate.
    pub fn known() -> Equivalents {
        Equivalents::parse(include_str!("equivalents.toml")).expect("the list is well-formed")
    }

    fn parse(text: &str) -> Option<Equivalents> {
        let file: toml::Table = text.parse().ok()?;
        let scripts = file.get("script")?.as_array()?.iter().map(|script| {
            let word = |name: &str| Some(script.get(name)?.as_str()?.to_owned());
            Some(((word("name")?, word("sha1")?), script.get("mutants")?.as_table()?.clone()))
        });
        Some(Equivalents { reasons: scripts.collect::<Option<_>>()? })
    }

    /// Returns why a mutant is equivalent, or `None` if the list does not have it.
    pub fn reason(&self, mutant: &Mutant) -> Option<String> {
        let mutants = self.reasons.get(&(mutant.script.clone(), mutant.sha1.clone()))?;
        let why = mutants.get(&format!("{} {}", mutant.mutation.operator, mutant.mutation.at))?;
        why.as_str().map(str::to_owned)
    }
}
