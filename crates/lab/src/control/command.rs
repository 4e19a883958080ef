//! The command that a driver runs beside the server, and its clock.

use super::Lab;

impl Lab {
    /// Says that the driver runs a command whose clock can jump. `ask` returns why it cannot jump at the moment.
    pub fn run_command_with(&mut self, ask: Box<dyn FnMut() -> Option<String>>) {
        self.has_command = true;
        self.ask_command = Some(ask);
    }

    /// Asks the driver about its command, before a request that makes the command's clock jump.
    pub(super) fn look_at_command(&mut self, argv: &[&[u8]]) {
        let is = |at: usize, word: &[u8]| argv.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
        if let Some(ask) = &mut self.ask_command
            && is(1, b"JUMP")
            && is(3, b"COMMAND")
        {
            let why = ask();
            if why != self.command_stands {
                // A replay cannot ask.
                let words = [&b"COMMAND"[..], why.as_deref().unwrap_or_default().as_bytes()];
                self.set_state(&words);
            }
        }
    }

    /// Takes how far the clock of the driver's command has to jump, in ms.
    pub fn take_command_jump(&mut self) -> Option<i64> {
        self.command_jump_ms.take()
    }
}
