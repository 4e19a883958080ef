//! What a script was recognised as.

/// What [`Stages`](crate::stages::Stages) recognised a script as. Opaque to the core, which keeps it with the cached script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptTag {
    pub id: u32,
    /// Every run of this script is shown to the stages, whatever they are interested in.
    pub watched: bool,
}
