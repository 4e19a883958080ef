//! The functions of a node: the libraries that clients have loaded. They are data: they survive the end of the process,
//! and replicas get them.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Node;
use super::scripts::log_line;
use crate::error::{Error, Outcome};
use crate::script::library::parse_header;
use crate::script::{self, Function, Host, LogLevel, Script, ScriptTag, Vm};
use crate::store::rdb;
use crate::wire::Reply;

/// A library that is loaded.
#[derive(Clone)]
pub struct Library {
    pub text: Box<[u8]>,
    pub(crate) functions: Vec<Function>,
}

/// The libraries of a node, and their functions.
#[derive(Clone, Default)]
pub struct Functions {
    libraries: BTreeMap<Vec<u8>, Library>,
    /// The functions of all libraries, by name in lower case.
    by_name: HashMap<Vec<u8>, Script, FixedState>,
}

/// What FUNCTION RESTORE does with the libraries that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePolicy {
    Flush,
    Append,
    Replace,
}

impl Functions {
    /// Returns the libraries with their names, in the order of the names.
    pub fn libraries(&self) -> impl ExactSizeIterator<Item = (&[u8], &Library)> {
        self.libraries.iter().map(|(name, library)| (&name[..], library))
    }

    /// Returns the texts of the libraries.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.libraries.values().map(|library| &*library.text)
    }

    /// Returns how many functions there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the bytes that the libraries' names and texts take.
    pub fn bytes(&self) -> usize {
        self.libraries.iter().map(|(name, library)| name.len() + library.text.len()).sum()
    }

    /// Returns a function, given its name in any case.
    pub fn find(&self, name: &[u8]) -> Option<&Script> {
        self.by_name.get(&name.to_ascii_lowercase())
    }

    /// Returns the flags that a function declares.
    pub(super) fn flags_of(&self, name: &[u8]) -> Option<script::Flags> {
        self.find(name).map(Script::flags)
    }

    /// Loads a library. Returns its name.
    ///
    /// # Errors
    ///
    /// Fails with Redis's error, and changes nothing.
    fn load(
        &mut self,
        vm: &mut Vm,
        text: &[u8],
        replace: bool,
        recognise: impl Fn(&[u8]) -> Option<ScriptTag>,
    ) -> Result<Vec<u8>, Error> {
        let header = parse_header(text)?;
        if !replace && self.libraries.contains_key(&header.name) {
            return Err(Error::owned([b"ERR Library '", &header.name[..], b"' already exists"].concat()));
        }
        let functions = vm.load_library(text, &header, &mut LoadHost, recognise)?;
        let library = Library { text: text.into(), functions };
        let old = self.remove(&header.name);
        if let Some(error) = self.collision(&library) {
            unload(vm, &library);
            if let Some(old) = old {
                self.insert(header.name, old);
            }
            return Err(error);
        }
        if let Some(old) = old {
            unload(vm, &old);
        }
        self.insert(header.name.clone(), library);
        Ok(header.name)
    }

    /// Returns the error for a library of which a function has the name of one that is loaded.
    fn collision(&self, library: &Library) -> Option<Error> {
        let mut names = library.functions.iter().filter_map(|function| function.script.function());
        let name = names.find(|name| self.find(name).is_some())?;
        Some(Error::owned([b"ERR Function ", name, b" already exists"].concat()))
    }

    /// Takes over the libraries of `other`.
    ///
    /// # Errors
    ///
    /// Fails with Redis's error if a library is loaded already, unless libraries are replaced, or if a function is; then
    /// changes nothing.
    fn join(&mut self, vm: &mut Vm, other: Functions, replace: bool) -> Outcome {
        let mut replaced = Vec::new();
        let mut problem = None;
        for (name, _) in other.libraries() {
            if !self.libraries.contains_key(name) {
            } else if replace {
                replaced.extend(self.remove(name).map(|library| (name.to_vec(), library)));
            } else {
                problem = Some(Error::owned([b"ERR Library ", name, b" already exists"].concat()));
                break;
            }
        }
        let mut libraries = other.libraries.values();
        if let Some(problem) = problem.or_else(|| libraries.find_map(|library| self.collision(library))) {
            replaced.into_iter().for_each(|(name, library)| self.insert(name, library));
            other.libraries.values().for_each(|library| unload(vm, library));
            return Err(problem);
        }
        replaced.iter().for_each(|(_, library)| unload(vm, library));
        other.libraries.into_iter().for_each(|(name, library)| self.insert(name, library));
        Ok(())
    }

    fn insert(&mut self, name: Vec<u8>, library: Library) {
        for Function { script, .. } in &library.functions {
            let name = script.function().unwrap_or_default().to_ascii_lowercase();
            self.by_name.entry(name).or_insert_with(|| script.clone());
        }
        self.libraries.insert(name, library);
    }

    fn remove(&mut self, name: &[u8]) -> Option<Library> {
        let library = self.libraries.remove(name)?;
        for Function { script, .. } in &library.functions {
            self.by_name.remove(&script.function().unwrap_or_default().to_ascii_lowercase());
        }
        Some(library)
    }

    /// Deletes all libraries.
    fn flush(&mut self, vm: &mut Vm) {
        std::mem::take(self).libraries.values().for_each(|library| unload(vm, library));
    }
}

fn unload(vm: &mut Vm, library: &Library) {
    library.functions.iter().for_each(|function| vm.unload(&function.script));
}

impl Node {
    /// Loads a library, as FUNCTION LOAD does. Returns its name.
    ///
    /// # Errors
    ///
    /// Fails with Redis's error, and changes nothing.
    pub fn load_library(&mut self, text: &[u8], replace: bool) -> Result<Vec<u8>, Error> {
        let Node { functions, scripts, stages, .. } = self;
        let name = functions.load(scripts.vm(), text, replace, |text| stages.recognise(text))?;
        self.replication.note_functions();
        Ok(name)
    }

    /// Deletes a library. Returns whether it was there.
    pub fn delete_library(&mut self, name: &[u8]) -> bool {
        let Some(library) = self.functions.remove(name) else { return false };
        unload(self.scripts.vm(), &library);
        self.replication.note_functions();
        true
    }

    /// Deletes all libraries.
    pub fn flush_functions(&mut self) {
        if !self.functions.libraries.is_empty() {
            self.functions.flush(self.scripts.vm());
        }
        self.replication.note_functions();
    }

    /// Loads the libraries of a payload of FUNCTION DUMP.
    ///
    /// # Errors
    ///
    /// Fails with Redis's error, and changes nothing.
    pub fn restore_functions(&mut self, payload: &[u8], policy: RestorePolicy) -> Outcome {
        let Node { functions, scripts, stages, config, .. } = self;
        let vm = scripts.vm();
        let mut restored = Functions::default();
        let outcome = rdb::restore_libraries(payload, config.version, |text| {
            restored.load(vm, text, false, |text| stages.recognise(text)).map(|_| ())
        });
        if let Err(error) = outcome {
            restored.flush(vm);
            return Err(error);
        }
        if policy == RestorePolicy::Flush {
            functions.flush(vm);
        }
        functions.join(vm, restored, policy == RestorePolicy::Replace)?;
        self.replication.note_functions();
        Ok(())
    }

    /// Replaces all libraries by those with these texts.
    pub(crate) fn replace_functions(&mut self, texts: &[Box<[u8]>]) {
        if self.functions.texts().eq(texts.iter().map(|text| &**text)) {
            return;
        }
        self.flush_functions();
        for text in texts {
            // A text that another node could load is refused only if it depends on more than its own node.
            if let Err(error) = self.load_library(text, true) {
                tracing::warn!("a library was not copied: {}", String::from_utf8_lossy(error.text()));
            }
        }
    }
}

/// What the code of a library finds when it is loaded: it can write to the log, and call nothing.
struct LoadHost;

impl Host for LoadHost {
    fn call(&mut self, _: &[&[u8]], reply: &mut Reply) {
        reply.error(b"ERR This Redis command is not allowed from script");
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        log_line(level, message);
    }

    fn may_run(&mut self, _: &[&[u8]]) -> Option<bool> {
        None
    }
}
