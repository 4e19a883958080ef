//! The words of a request: texts with slots, such as `{lock}:queue`.

use crate::binding::{CHANNEL, CLOCK_MS, LEASE_MS, LOCK, OWNER, Parameter};

/// Declares the slots. The texts appear in error messages and in docs/own-locks.md.
macro_rules! slots {
    ($($slot:ident $name:literal)*) => {
        /// A value that a client fills in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Slot { $($slot),* }

        impl Slot {
            pub const ALL: &[Slot] = &[$(Slot::$slot),*];

            /// Returns the name between the braces.
            pub fn name(self) -> &'static str {
                match self { $(Slot::$slot => $name),* }
            }
        }
    };
}

slots! {
    Lock "lock"
    Channel "channel"
    Owner "owner"
    Token "token"
    Fence "fence"
    Request "request"
    LeaseMs "lease_ms"
    LeaseS "lease_s"
    NowMs "now_ms"
    NowS "now_s"
    UntilMs "until_ms"
    UntilS "until_s"
    WaiterMs "waiter_ms"
    Count "count"
    Permits "permits"
    Limit "limit"
    PerMs "per_ms"
    PerS "per_s"
    Burst "burst"
}

impl Slot {
    /// Returns the slot with a name.
    pub fn find(name: &str) -> Option<Slot> {
        Slot::ALL.iter().copied().find(|slot| slot.name() == name)
    }

    /// Returns whether the value is the same in all requests.
    fn is_constant(self) -> bool {
        use Slot::*;
        matches!(self, Lock | Channel | WaiterMs | Permits | Limit | PerMs | PerS | Burst)
    }

    /// Returns whether the value depends on the clock of the client.
    pub fn is_clock(self) -> bool {
        matches!(self, Slot::NowMs | Slot::NowS | Slot::UntilMs | Slot::UntilS)
    }

    /// Returns whether the value depends on the lease that the client asks for.
    pub fn is_lease(self) -> bool {
        matches!(self, Slot::LeaseMs | Slot::LeaseS | Slot::UntilMs | Slot::UntilS)
    }

    /// Returns the parameter that the requests of real clients can be checked with, if there is one.
    pub fn parameter(self) -> Option<Parameter> {
        match self {
            Slot::Lock => Some(LOCK),
            Slot::Channel => Some(CHANNEL),
            Slot::Owner => Some(OWNER),
            Slot::LeaseMs => Some(LEASE_MS),
            Slot::NowMs => Some(CLOCK_MS),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(Slot),
}

/// A word of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

impl Template {
    /// Returns the template that is one slot.
    pub fn of(slot: Slot) -> Template {
        Template(vec![Piece::Slot(slot)])
    }

    /// Parses a text with slots in braces. `{{` and `}}` are braces.
    ///
    /// # Errors
    /// Fails if a brace is not closed or names no slot.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let name = match (brace, rest.split_once('}')) {
                ("{", Some((name, after))) => {
                    rest = after;
                    name
                }
                _ => {
                    return Err(format!(
                        "a brace of {text:?} has no counterpart; write {brace}{brace} for a brace"
                    ));
                }
            };
            let slot = Slot::find(name).ok_or_else(|| unknown(name))?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Slot(slot));
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Template(pieces))
    }

    /// Returns the slots in order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Slot(slot) => Some(*slot),
            Piece::Text(_) => None,
        })
    }

    /// Returns the slot, if the template consists of one slot and nothing else.
    pub fn only_slot(&self) -> Option<Slot> {
        match self.0[..] {
            [Piece::Slot(slot)] => Some(slot),
            _ => None,
        }
    }

    /// Writes the word with the values of its slots.
    pub fn render(&self, value: &mut dyn FnMut(Slot, &mut String)) -> String {
        let mut word = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => word.push_str(text),
                Piece::Slot(slot) => value(*slot, &mut word),
            }
        }
        word
    }

    /// Returns the part before the first slot whose value differs between requests, and whether that is all.
    pub fn constant_prefix(&self) -> (Template, bool) {
        let differs = |piece: &Piece| matches!(piece, Piece::Slot(slot) if !slot.is_constant());
        let end = self.0.iter().position(differs);
        (Template(self.0[..end.unwrap_or(self.0.len())].to_vec()), end.is_none())
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = Slot::ALL.iter().map(|slot| slot.name()).collect();
    format!("{{{name}}} is none of the slots {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str) -> Result<String, String> {
        Ok(Template::parse(text)?.render(&mut |slot, out| out.push_str(&slot.name().to_uppercase())))
    }

    #[test]
    fn slots_are_replaced_and_double_braces_are_braces() {
        assert_eq!(render("lock:{lock}:{owner}"), Ok("lock:LOCK:OWNER".to_owned()));
        assert_eq!(render("{{{lock}}}:queue"), Ok("{LOCK}:queue".to_owned()));
        assert_eq!(render(""), Ok(String::new()));
        for wrong in ["{lock", "lock}", "{}", "{owners}", "{lo{ck}", "{"] {
            assert!(render(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_constant_part_of_a_key_ends_at_the_first_slot_of_a_request() {
        let prefix = |text: &str| Template::parse(text).unwrap().constant_prefix();
        assert_eq!(prefix("{lock}:{owner}:x"), (Template::parse("{lock}:").unwrap(), false));
        assert_eq!(prefix("{lock}:x"), (Template::parse("{lock}:x").unwrap(), true));
    }
}
