//! The requests for the scripts of a release.
//!
//! Since 3.44 a client renews all its locks in one request. Such a batch names two objects, of which one does not
//! exist, so that it shows which arguments and which reply belong to which of them.

use super::bench::Loaded;
use crate::binding::{Binding, OWNER, OWNER_COUNT};
use crate::invariant::Invariant;
use crate::model::{Args, Call, Model, Parameter, Reply, Verdict};
use crate::own;
use crate::script_set::LockScript;

/// The script of an operation.
pub struct Script {
    pub loaded: Loaded,
    /// `Class.method`.
    pub name: String,
    parameters: Vec<Parameter>,
    /// The number of parameters that are keys.
    keys: usize,
    is_batch: bool,
}

/// An object and an owner that no schedule creates.
const ABSENT: &str = "absent";

impl Script {
    /// Prepares a script of a release.
    pub fn new(script: &LockScript) -> Script {
        let Binding { keys, args } = &script.binding;
        Script {
            loaded: Loaded::new(script),
            name: script.name.clone(),
            parameters: keys.iter().chain(args).copied().collect(),
            keys: keys.len(),
            is_batch: script.text.contains("#KEYS") && !own::roles::ROLES.contains(&script.role),
        }
    }

    /// Returns the place of the object in a batch of two, or `None` if the request is for this object alone.
    fn place(&self, call: &Call) -> Option<usize> {
        let request = call.request as usize;
        (self.is_batch && request % 2 == 1).then_some(request / 2 % 2)
    }

    /// Returns how many objects a request names.
    pub fn objects(&self, call: &Call) -> usize {
        if self.place(call).is_some() { 2 } else { 1 }
    }

    /// Writes the keys and arguments of a request.
    pub fn write(&self, model: &dyn Model, call: &Call, out: &mut Args) {
        let Some(place) = self.place(call) else {
            return self.parameters.iter().for_each(|&parameter| model.write(parameter, call, out));
        };
        let (keys, args) = self.parameters.split_at(self.keys);
        let write = |parameter, is_there: bool, out: &mut Args| match (parameter, is_there) {
            (OWNER_COUNT, _) => out.int(2),
            (_, true) => model.write(parameter, call, out),
            (_, false) => out.text(ABSENT),
        };
        for object in 0..2 {
            keys.iter().for_each(|&key| write(key, object == place, out));
        }
        // The lease applies to all, then follow the owners of each. Threads of one client may share a reader's lock.
        let (lease, owners) = args.split_at(1);
        lease.iter().for_each(|&lease| write(lease, true, out));
        for object in 0..2 {
            for &parameter in owners {
                // A client names all its threads that read.
                let several = parameter == OWNER && owners.contains(&OWNER_COUNT);
                let reader = if several { call.request as usize / 4 % 2 } else { 0 };
                let readers = if several { 2 } else { 1 };
                (0..readers).for_each(|n| write(parameter, object == place && n == reader, out));
            }
        }
    }

    /// Returns the part of a reply that is for the object. The other part has to say that nobody holds the other one.
    pub fn part<'a>(&self, call: &Call, reply: Reply<'a>, verdict: &mut Verdict) -> Reply<'a> {
        let elements = match reply {
            _ if !self.is_batch => return reply,
            Reply::Error(_) => return reply,
            Reply::Array(_) => reply,
            _ => return Reply::Nil,
        };
        let Some(place) = self.place(call) else { return elements.element(0) };
        let other = elements.element(1 - place);
        verdict.expect(Invariant::M5, other == Reply::Int(0), || {
            format!("answered {reply}, and nobody holds lock {}", 1 - place)
        });
        elements.element(place)
    }
}
