//! Tests that the model of locks described by a file reports violations, and only violations.

use super::description::{DescriptionError, scripts};
use super::model::OwnLock;
use crate::invariant::Invariant;
use crate::model::Reply;
use crate::testing::{Keys, NO_MESSAGES};
use redlatch_core::store::{StringValue, Value};

#[test]
fn a_description_says_what_is_wrong_with_it() {
    let good = include_str!("../../../../docs/locks/set-nx.toml");
    assert_eq!(scripts(good).map(|scripts| scripts.len()), Ok(2));
    assert_eq!(scripts("[renew]"), Err(DescriptionError::UnknownPart("renew".to_owned())));
    assert_eq!(scripts("[release]"), Err(DescriptionError::MissingPart("acquire")));
    let missing = DescriptionError::MissingField { part: "acquire", field: "script" };
    assert_eq!(scripts("[acquire]"), Err(missing));
    let error = scripts(&good.replace("\"lease_ms\"", "\"lease\"")).unwrap_err();
    assert!(matches!(error, DescriptionError::UnknownWord { field: "args", .. }), "{error}");
    assert!(matches!(scripts("["), Err(DescriptionError::Syntax(_))));
}

#[test]
fn two_owners_at_once_violate_m1() {
    let (mut keys, mut model) = (Keys::new(), OwnLock::default());
    let acquire = |owner, keys: &mut Keys, model: &mut OwnLock| {
        keys.judge(model, ("acquire", owner, 0), (Reply::Int(1), NO_MESSAGES), |keys, call| {
            keys.set("my:lock", Value::String(StringValue::new(b"x")), Some(call.lease_ms));
        })
    };
    assert_eq!(acquire(0, &mut keys, &mut model), None);
    assert_eq!(acquire(1, &mut keys, &mut model), Some(Invariant::M1));
    keys.advance(10_001);
    assert_eq!(acquire(0, &mut keys, &mut model), None);
}
