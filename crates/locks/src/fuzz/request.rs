//! The requests for the scripts of a release.
//!
//! Since 3.44 a client renews all its locks in one request. Such a batch names two objects, of which one does not
//! exist, so that it shows which arguments and which reply belong to which of them.

use super::bench::Loaded;
use crate::binding::{Binding, OWNER_COUNT};
use crate::invariant::Invariant;
use crate::model::{Args, Call, Model, Parameter, Reply, Verdict};
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
            is_batch: script.text.contains("#KEYS"),
        }
    }

    /// Returns how many objects a request names.
    pub fn objects(&self) -> usize {
        if self.is_batch { 2 } else { 1 }
    }

    /// Writes the keys and arguments of a request.
    pub fn write(&self, model: &dyn Model, call: &Call, out: &mut Args) {
        let (keys, args) = self.parameters.split_at(self.keys);
        if !self.is_batch {
            return self.parameters.iter().for_each(|&parameter| model.write(parameter, call, out));
        }
        let objects = [self.position(call) == 0, self.position(call) == 1];
        for is_there in objects {
            for &key in keys {
                if is_there { model.write(key, call, out) } else { out.text(ABSENT) }
            }
        }
        // The lease applies to all, then follow the owners of each. Threads of one client may share a reader's lock.
        let (lease, owners) = args.split_at(1);
        lease.iter().for_each(|&lease| model.write(lease, call, out));
        for is_there in objects {
            for &parameter in owners {
                match parameter {
                    OWNER_COUNT => out.int(2),
                    _ if owners.len() == 1 && is_there => model.write(parameter, call, out),
                    _ if owners.len() == 1 => out.text(ABSENT),
                    _ => {
                        for place in 0..2 {
                            let is_owner = is_there && place == call.request as usize / 2 % 2;
                            if is_owner { model.write(parameter, call, out) } else { out.text(ABSENT) }
                        }
                    }
                }
            }
        }
    }

    /// Returns the place of the object in the batch.
    fn position(&self, call: &Call) -> usize {
        call.request as usize % 2
    }

    /// Returns the part of a reply that is for the object. The other part has to say that nobody holds the other one.
    pub fn part<'a>(&self, call: &Call, reply: Reply<'a>, verdict: &mut Verdict) -> Reply<'a> {
        if !self.is_batch || reply.is_error() {
            return reply;
        }
        let position = self.position(call);
        let other = reply.element(1 - position);
        verdict.expect(Invariant::M5, matches!(reply, Reply::Array(_)) && other == Reply::Int(0), || {
            format!("answered {reply}, and nobody holds lock {}", 1 - position)
        });
        match reply {
            Reply::Array(_) => reply.element(position),
            _ => Reply::Nil,
        }
    }
}
