use super::session::{OwnedArgs, SessionId};
use std::collections::VecDeque;
pub struct Scripts;
impl Scripts {
    pub fn new(_: crate::Version) -> Scripts {
        Scripts
    }
    pub fn is_running(&self) -> bool {
        false
    }
    pub fn is_busy(&self) -> bool {
        false
    }
    pub fn client_left(&mut self, _: SessionId) {}
    pub fn run_after(&mut self, _: VecDeque<OwnedArgs>) {}
    pub fn len(&self) -> usize {
        0
    }
}
impl super::Node {
    pub fn resume_script(&mut self) {}
}
