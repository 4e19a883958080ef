//! Shows the keys of locks in readable form.

use super::model::{OWNER_IDS, owner_name};
use redlatch_core::store::Value;

/// Replaces the ids of owners by their letters.
pub fn shorten(text: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(text).into_owned();
    for (owner, id) in OWNER_IDS.iter().enumerate() {
        text = text.replace(id, &owner_name(owner).to_string());
    }
    text
}

/// Returns a value in readable form, on one line.
pub fn show_value(value: &Value) -> String {
    let number = |score: f64| if score.fract() == 0.0 { format!("{score:.0}") } else { score.to_string() };
    match value {
        Value::String(value) => shorten(&value.to_vec()),
        Value::Hash(hash) => {
            let fields =
                hash.iter().map(|field| format!("{}: {}", shorten(field.name), shorten(field.value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::List(list) => format!("[{}]", list.iter().map(shorten).collect::<Vec<_>>().join(", ")),
        Value::SortedSet(set) => {
            let members = set.iter().map(|(member, score)| format!("{}: {}", shorten(member), number(score)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Set(set) => format!("{} members", set.len()),
        Value::Stream(stream) => format!("{} entries", stream.len()),
    }
}
