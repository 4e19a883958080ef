use super::command::*;
pub const COMMANDS: &[Command] = &[];
