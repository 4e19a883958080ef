//! A register with compare-and-set: the model of published histories.

use super::search::Model;
use crate::datum::Datum;

/// An operation on a register, with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// `None`: the value that was read is not known.
    Read(Option<Datum>),
    Write(Datum),
    /// `None`: whether it has compared equal is not known.
    CompareAndSet {
        from: Datum,
        to: Datum,
        is_set: Option<bool>,
    },
}

/// A register that is nil at the beginning.
pub struct Register;

impl Model for Register {
    type State = Datum;
    type Operation = Access;

    fn start(&self) -> Datum {
        Datum::Nil
    }

    fn step(&self, state: &Datum, operation: &Access, next: &mut Vec<Datum>) {
        match operation {
            Access::Read(read) if read.as_ref().is_none_or(|read| read == state) => next.push(state.clone()),
            Access::Read(_) => {}
            Access::Write(value) => next.push(value.clone()),
            Access::CompareAndSet { from, to, is_set } => {
                let is_equal = from == state;
                if is_set.is_none_or(|is_set| is_set == is_equal) {
                    next.push(if is_equal { to } else { state }.clone());
                }
            }
        }
    }
}
