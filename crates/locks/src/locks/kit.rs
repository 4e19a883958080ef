//! The lock scripts of one release, by what they do.

use super::binding::Binding;
use super::model::{Sends, objects};
use super::role::{Role, role};
use crate::jar::JarScript;

/// A script that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub role: Role,
    /// `Class.method`.
    pub name: String,
    pub text: String,
    pub binding: Binding,
    /// What the method around it uses.
    pub uses: Vec<String>,
}

/// The lock scripts of one release.
#[derive(Clone, Debug, Default)]
pub struct Kit {
    tools: Vec<Tool>,
    /// Lock scripts that cannot be called, and why.
    not_callable: Vec<String>,
}

impl Kit {
    /// Picks the lock scripts out of a jar's. Where several have one role the first counts, which is the one that clients
    /// send.
    pub fn new(scripts: &[JarScript]) -> Kit {
        let mut kit = Kit::default();
        // A bounded queue has a semaphore inside, with scripts of its own.
        for script in scripts.iter().filter(|script| script.class != "RedissonBoundedBlockingQueue") {
            let Some(role) = role(script.text.as_bytes()).map(|role| role.of_class(&script.class)) else {
                continue;
            };
            match Binding::of(role, script.text.as_bytes()) {
                Ok(_) if kit.tool(role).is_some_and(|known| known.text == script.text) => {}
                Ok(_) if kit.tool(role).is_some() => {
                    kit.not_callable.push(format!(
                        "{} ({}): another script does it",
                        script.name(),
                        role.name()
                    ));
                }
                Ok(binding) => kit.tools.push(Tool {
                    role,
                    name: script.name(),
                    text: script.text.clone(),
                    binding,
                    uses: script.uses.clone(),
                }),
                Err(why) => kit.not_callable.push(format!("{} ({}): {why}", script.name(), role.name())),
            }
        }
        kit
    }

    /// The scripts of a lock that a file describes.
    #[cfg(feature = "own")]
    pub fn of_own(description: &str) -> Result<Kit, String> {
        Ok(Kit { tools: super::own::tools(description)?, not_callable: Vec::new() })
    }

    /// Adds a script to the others.
    pub fn add(&mut self, tool: Tool) {
        self.tools.push(tool);
    }

    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    pub fn tool(&self, role: Role) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.role == role)
    }

    /// The lock scripts that no model calls, and why.
    pub fn left_out(&self) -> Vec<String> {
        let objects = objects(self);
        let operations = objects.iter().flat_map(|(_, model)| model.operations());
        let called: Vec<&str> =
            operations.filter_map(|operation| Some(&self.find(operation.sends)?.name[..])).collect();
        let others = self.tools.iter().filter(|tool| !called.contains(&&tool.name[..]));
        let others = others.map(|tool| format!("{} ({}): no model calls it", tool.name, tool.role.name()));
        self.not_callable.iter().cloned().chain(others).collect()
    }

    /// The script that an operation sends.
    pub fn find(&self, sends: Sends) -> Option<&Tool> {
        match sends {
            Sends::Either(first, second) => self.tool(first).or_else(|| self.tool(second)),
            _ => self.tool(sends.role()?),
        }
    }
}
