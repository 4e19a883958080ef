//! Lock objects: what their scripts are called, what they promise, and how to tell that a promise was broken.

pub mod binding;
pub mod role;
