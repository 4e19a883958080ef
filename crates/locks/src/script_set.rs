//! The lock scripts of one release, by role.

use std::fmt;

use super::binding::Binding;
use super::catalogue::{OBJECTS, Object};
use super::model::{Model, Sends};
#[cfg(feature = "own")]
use super::own::description::{self, DescriptionError, Files};
use super::own::lock::{DEFAULT_VERSION, Shared};
use super::role::{Plain, Role};
use super::sites::{self, Reading, is_in};
use crate::jar::{Jar, JarScript};
use crate::own;
use redlatch_core::version::Version;

/// A script that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct LockScript {
    pub role: Role,
    /// `Class.method`.
    pub name: String,
    /// Empty for a command that a file describes: its words are the arguments.
    pub text: String,
    pub binding: Binding,
    /// The fields and methods that the surrounding method uses.
    pub uses: Vec<String>,
}

/// The lock scripts of one release.
#[derive(Clone, Debug, Default)]
pub struct ScriptSet {
    scripts: Vec<LockScript>,
    /// Scripts that cannot be called, or may not be what they are called as.
    problems: Vec<Problem>,
    /// The roles of scripts that the release has and that cannot be called.
    refused: Vec<Role>,
    /// The roles of scripts in whose place the clients of the release send plain commands.
    plain: Vec<Role>,
    /// The objects that the release does not have.
    absent: Vec<&'static str>,
    /// The lock that a file describes.
    own: Option<Shared>,
}

/// A lock script of a jar that is not run, or that may not be what it is run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `Class.method`.
    pub script: String,
    pub what: String,
    /// Whether the script is run nevertheless.
    pub is_run: bool,
    /// The objects that it concerns; empty if that is not known.
    objects: Vec<&'static str>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { script, what, is_run, .. } = self;
        write!(f, "{}: {script}: {what}", if *is_run { "doubtful" } else { "not run" })
    }
}

impl ScriptSet {
    /// Selects the lock scripts of a jar. If several have the same role, takes the first, which is the one that clients
    /// send.
    pub fn of_jar(jar: &Jar) -> ScriptSet {
        let mut set = ScriptSet::new(&jar.scripts);
        let sends = |plain: &&Plain| {
            jar.uses.get(plain.site).is_some_and(|uses| uses.iter().any(|used| used == plain.uses))
        };
        let plain = OBJECTS.iter().flat_map(|object| object.plain).filter(sends).map(|plain| plain.role);
        set.plain = plain.filter(|role| set.script(*role).is_none() && !set.refused.contains(role)).collect();
        let lacks = |object: &&&Object| object.class.is_some_and(|class| !jar.classes.contains(class));
        set.absent = OBJECTS.iter().filter(lacks).map(|object| object.name).collect();
        set
    }

    /// Selects the lock scripts from those of a jar whose classes are not known.
    pub fn new(scripts: &[JarScript]) -> ScriptSet {
        let mut set = ScriptSet::default();
        let readings = sites::read(scripts);
        let (others, at_sites): (Vec<_>, Vec<_>) =
            scripts.iter().zip(readings).partition(|(_, reading)| matches!(reading, Reading::Text(_)));
        for (script, reading) in at_sites.into_iter().chain(others) {
            set.add(script, reading);
        }
        set
    }

    fn add(&mut self, script: &JarScript, reading: Reading) {
        let role = match reading {
            Reading::Other => return,
            Reading::Unknown => {
                let is_in =
                    |object: &&&Object| object.sites.iter().any(|(site, _)| is_in(site, &script.class));
                let objects = OBJECTS.iter().filter(is_in).map(|object| object.name).collect();
                let what = "a script of a lock's class that fits no role".to_owned();
                return self.problems.push(Problem { script: script.name(), what, is_run: false, objects });
            }
            Reading::Site { role, .. } | Reading::Text(role) => role,
        };
        // The text of a script that has changed does not show what its arguments were meant to be.
        let binding = match (&script.call, reading) {
            (None, _) => Binding::of(role, script.text.as_bytes()),
            (Some(call), Reading::Text(_)) => {
                Binding::of_call(role, call).or_else(|_| Binding::of(role, script.text.as_bytes()))
            }
            (Some(call), _) => Binding::of_call(role, call),
        };
        let problem = |what: String, is_run: bool| Problem {
            script: format!("{} ({})", script.name(), role.name()),
            what,
            is_run,
            objects: users(role),
        };
        let known = self.script(role);
        match binding {
            Ok(binding)
                if known.is_some_and(|known| known.text == script.text && known.binding == binding) => {}
            Ok(_) if known.is_some() => {
                self.problems.push(problem("another script does it".to_owned(), false));
            }
            Ok(_) if script.text.is_empty() => {
                self.refused.push(role);
                self.problems.push(problem("its text is put together when it is sent".to_owned(), false));
            }
            Ok(binding) => {
                if let Reading::Site { text: Some(other), .. } = reading {
                    self.problems.push(problem(format!("its text is that of {}", other.name()), true));
                }
                self.scripts.push(LockScript {
                    role,
                    name: script.name(),
                    text: script.text.clone(),
                    binding,
                    uses: script.uses.clone(),
                });
            }
            Err(why) => {
                self.refused.push(role);
                self.problems.push(problem(why.to_string(), false));
            }
        }
    }

    /// Reads a lock that a file describes.
    ///
    /// # Errors
    /// Fails if the description is not well-formed, or names other files.
    #[cfg(feature = "own")]
    pub fn of_own(description: &str) -> Result<ScriptSet, DescriptionError> {
        ScriptSet::of_own_with(description, &mut description::no_files)
    }

    /// Reads a lock that a file describes. `files` reads the files that it names.
    ///
    /// # Errors
    /// Fails if the description is not well-formed.
    #[cfg(feature = "own")]
    pub fn of_own_with(description: &str, files: &mut Files) -> Result<ScriptSet, DescriptionError> {
        let mut set = ScriptSet::default();
        set.put_own(description::parse(description, files)?.into());
        Ok(set)
    }

    /// Adds a lock that a file describes, and replaces any other.
    pub fn put_own(&mut self, lock: Shared) {
        self.scripts.retain(|script| !own::roles::ROLES.contains(&script.role));
        self.scripts.extend(lock.scripts());
        self.own = Some(lock);
    }

    /// Returns the lock that a file describes.
    pub fn own(&self) -> Option<&Shared> {
        self.own.as_ref()
    }

    /// Returns the release of Redis that the scripts are run on.
    pub fn version(&self) -> Version {
        self.own.as_ref().map_or(DEFAULT_VERSION, |lock| lock.version)
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
        // Objects share scripts, but each has its own script for its defining operation. One that has no scripts of its
        // own needs all that it uses.
        let is_there = |object: &Object, model: &dyn Model| match object.class {
            Some(_) => model.operations().iter().all(|operation| self.sends(operation.sends)),
            None => {
                let mut defining = model.operations().iter().filter(|operation| operation.is_defining);
                defining.any(|operation| self.find(operation.sends).is_some())
            }
        };
        let present = OBJECTS.iter().filter(|object| !self.absent.contains(&object.name));
        let models = present.map(|object| (object, (object.model)(self)));
        let models = models.filter(|(object, model)| is_there(object, &**model));
        models.map(|(object, model)| (object.name, model)).collect()
    }

    /// Returns the lock scripts of these objects, or of all if there are none, that are not run, or may not be what they
    /// are run as.
    pub fn problems(&self, objects: &[String]) -> Vec<Problem> {
        let models = self.models();
        let operations = models.iter().flat_map(|(_, model)| model.operations());
        let called: Vec<&str> =
            operations.filter_map(|operation| Some(&self.find(operation.sends)?.name[..])).collect();
        let others = self.scripts.iter().filter(|script| !called.contains(&&script.name[..]));
        let others = others.map(|script| Problem {
            script: format!("{} ({})", script.name, script.role.name()),
            what: "no model calls it".to_owned(),
            is_run: false,
            objects: users(script.role),
        });
        let concerns = |problem: &Problem| {
            let is_asked = |name: &&str| objects.iter().any(|object| object == name);
            objects.is_empty() || problem.objects.is_empty() || problem.objects.iter().any(is_asked)
        };
        self.problems.iter().cloned().chain(others).filter(concerns).collect()
    }

    /// Returns whether a client of the release sends this request.
    pub fn sends(&self, sends: Sends) -> bool {
        self.find(sends).is_some()
            || match sends {
                Sends::Script(_) | Sends::Either(..) => false,
                Sends::ScriptOrPexpire(role) | Sends::ScriptOrGet(role) | Sends::ScriptOrMode(role) => {
                    self.plain.contains(&role)
                }
                Sends::ScriptOrNothing(_) => !self.refuses(sends),
                Sends::Pexpire | Sends::Event(_) => true,
            }
    }

    /// Returns whether clients of the release send a script for this request that cannot be called.
    pub fn refuses(&self, sends: Sends) -> bool {
        self.find(sends).is_none() && sends.role().is_some_and(|role| self.refused.contains(&role))
    }

    /// Returns the script that an operation sends.
    pub fn find(&self, sends: Sends) -> Option<&LockScript> {
        match sends {
            Sends::Either(first, second) => match self.script(first) {
                None if !self.refused.contains(&first) => self.script(second),
                script => script,
            },
            _ => self.script(sends.role()?),
        }
    }
}

/// Returns the objects that use the scripts with a role.
fn users(role: Role) -> Vec<&'static str> {
    let nothing = ScriptSet::default();
    let uses = |object: &&&Object| {
        let model = (object.model)(&nothing);
        object.roles.contains(&role)
            || model.operations().iter().any(|operation| match operation.sends {
                Sends::Either(first, second) => first == role || second == role,
                sends => sends.role() == Some(role),
            })
    };
    OBJECTS.iter().filter(uses).map(|object| object.name).collect()
}
