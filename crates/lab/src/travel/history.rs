//! All operations on locks of a run.

use crate::trace::{Player, ReplayError, Tape};
use redlatch_locks::history::export::Format;

/// Replays a run and writes the operations on its locks.
///
/// # Errors
/// The trace does not replay.
pub fn export(tape: &Tape, format: Format) -> Result<String, ReplayError> {
    let mut player = Player::new(tape)?;
    player.lab_mut().keep_whole_history();
    while player.step()? {}
    let (_, lab) = player.finish()?;
    Ok(lab.with_history(|history| history.export_all(format)).unwrap_or_default())
}
