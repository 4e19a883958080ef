//! The lock scripts of one release, by role.

use super::binding::Binding;
use super::catalogue::OBJECTS;
use super::model::{Model, Sends};
#[cfg(feature = "own")]
use super::own::description::{self, DescriptionError};
use super::role::{Role, role};
use crate::jar::JarScript;

/// A script that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct LockScript {
    pub role: Role,
    /// `Class.method`.
    pub name: String,
    pub text: String,
    pub binding: Binding,
    /// The fields and methods that the surrounding method uses.
    pub uses: Vec<String>,
}

/// The lock scripts of one release.
#[derive(Clone, Debug, Default)]
pub struct ScriptSet {
    scripts: Vec<LockScript>,
    /// The lock scripts that cannot be called, with the reasons.
    not_callable: Vec<String>,
}

impl ScriptSet {
    /// Selects the lock scripts from those of a jar. If several have the same role, takes the first, which is the one
    /// that clients send.
    pub fn new(scripts: &[JarScript]) -> ScriptSet {
        let mut set = ScriptSet::default();
        // A bounded queue contains a semaphore that has its own scripts.
        for script in scripts.iter().filter(|script| script.class != "RedissonBoundedBlockingQueue") {
            let Some(role) = role(script.text.as_bytes()).map(|role| role.of_class(&script.class)) else {
                continue;
            };
            match Binding::of(role, script.text.as_bytes()) {
                Ok(_) if set.script(role).is_some_and(|known| known.text == script.text) => {}
                Ok(_) if set.script(role).is_some() => {
                    set.not_callable.push(format!(
                        "{} ({}): another script does it",
                        script.name(),
                        role.name()
                    ));
                }
                Ok(binding) => set.scripts.push(LockScript {
                    role,
                    name: script.name(),
                    text: script.text.clone(),
                    binding,
                    uses: script.uses.clone(),
                }),
                Err(why) => set.not_callable.push(format!("{} ({}): {why}", script.name(), role.name())),
            }
        }
        set
    }

    /// Reads the scripts of a lock that a file describes.
    ///
    /// # Errors
    /// Fails if the description is not well-formed.
    #[cfg(feature = "own")]
    pub fn of_own(description: &str) -> Result<ScriptSet, DescriptionError> {
        Ok(ScriptSet { scripts: description::scripts(description)?, not_callable: Vec::new() })
    }

    /// Adds a script, and replaces any other script with the same role.
    pub fn put(&mut self, script: LockScript) {
        match self.scripts.iter_mut().find(|known| known.role == script.role) {
            Some(known) => *known = script,
            None => self.scripts.push(script),
        }
    }

    /// Returns all scripts.
    pub fn scripts(&self) -> &[LockScript] {
        &self.scripts
    }

    /// Returns the script with a role.
    pub fn script(&self, role: Role) -> Option<&LockScript> {
        self.scripts.iter().find(|script| script.role == role)
    }

    /// Returns the models of the release: one for each object whose scripts it has.
    pub fn models(&self) -> Vec<(&'static str, Box<dyn Model>)> {
        let models = OBJECTS.iter().map(|object| (object.name, (object.model)(self)));
        // Objects share scripts, but each has its own script for its defining operation.
        let is_there = |model: &dyn Model| {
            let mut defining = model.operations().iter().filter(|operation| operation.is_defining);
            defining.any(|operation| self.find(operation.sends).is_some())
        };
        models.filter(|(_, model)| is_there(&**model)).collect()
    }

    /// Returns the lock scripts that no model calls, with the reasons.
    pub fn left_out(&self) -> Vec<String> {
        let models = self.models();
        let operations = models.iter().flat_map(|(_, model)| model.operations());
        let called: Vec<&str> =
            operations.filter_map(|operation| Some(&self.find(operation.sends)?.name[..])).collect();
        let others = self.scripts.iter().filter(|script| !called.contains(&&script.name[..]));
        let others =
            others.map(|script| format!("{} ({}): no model calls it", script.name, script.role.name()));
        self.not_callable.iter().cloned().chain(others).collect()
    }

    /// Returns the script that an operation sends.
    pub fn find(&self, sends: Sends) -> Option<&LockScript> {
        match sends {
            Sends::Either(first, second) => self.script(first).or_else(|| self.script(second)),
            _ => self.script(sends.role()?),
        }
    }
}
