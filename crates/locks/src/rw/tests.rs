//! Tests that the model of read/write locks reports violations, and only violations.

use super::model::ReadWriteLock;
use crate::binding::{MESSAGE, OWNER};
use crate::invariant::Invariant;
use crate::model::{Args, Call, Model, OWNER_IDS, Reply};
use crate::script_set::ScriptSet;
use crate::testing::{Keys, NO_MESSAGES};

const A: &str = OWNER_IDS[0];
const B: &str = OWNER_IDS[1];

#[test]
fn readers_share_the_lock_and_a_writer_does_not() {
    let (mut keys, mut model) = (Keys::new(), ReadWriteLock::new(&ScriptSet::default()));
    let one = keys.judge(&mut model, ("read.acquire", 0, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
        keys.set_hash("my:lock", &[("mode", "read"), (A, "1")], call.lease_ms);
    });
    let two = keys.judge(&mut model, ("read.acquire", 1, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
        keys.set_hash("my:lock", &[("mode", "read"), (A, "1"), (B, "1")], call.lease_ms);
    });
    assert_eq!((one, two), (None, None));
    let writer = format!("{B}:write");
    let write = keys.judge(&mut model, ("write.acquire", 1, 0), (Reply::Nil, NO_MESSAGES), |keys, call| {
        keys.set_hash("my:lock", &[("mode", "write"), (A, "1"), (B, "1"), (&writer, "1")], call.lease_ms);
    });
    assert_eq!(write, Some(Invariant::M1));
}

#[test]
fn a_writer_has_a_name_of_its_own() {
    let model = ReadWriteLock::new(&ScriptSet::default());
    let name = |operation: &str| {
        let index = model.operations().iter().position(|row| row.name == operation).expect(operation);
        let mut args = Args::default();
        for parameter in [OWNER, MESSAGE] {
            model.write(parameter, &Call { operation: index, ..Call::default() }, &mut args);
        }
        args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(name("read.unlock"), [A.to_owned(), "0".to_owned()]);
    assert_eq!(name("write.unlock"), [format!("{A}:write"), "0".to_owned()]);
}
