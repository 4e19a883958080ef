//! The commands. Each file has one family: its rows and their handlers. [`table`] joins the families.

pub mod command;
pub mod ctx;
pub mod edit;
pub mod table;

mod bitfield;
mod bitmaps;
mod clients;
mod config;
mod connection;
mod dump;
mod expiry;
mod hash_expiry;
mod hashes;
mod help;
mod hyperloglogs;
mod info;
mod introspection;
mod keys;
mod lcs;
mod list_moves;
mod lists;
mod observability;
mod pubsub;
mod random;
mod scan;
mod scripting;
mod server;
mod set_algebra;
mod sets;
mod sort;
mod sorted_set_algebra;
mod sorted_set_pops;
mod sorted_set_ranges;
mod sorted_sets;
mod strings;
mod transactions;
