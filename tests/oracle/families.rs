//! Sends every command family to Redlatch and to the real redis-server; the replies have to be the same.
//!
//! The cases are in `tests/differential/`, a file per family; `tests/support/case.rs` explains their format.

use crate::support::case;
use crate::support::server::Server;

fn compare(family: &str, text: &str, release: &str, args: &[&str]) {
    let Some(theirs) = Server::redis(release, args) else { return };
    let ours = Server::redlatch(release, args);
    match case::run_file(text, release.parse().unwrap(), &ours, &theirs) {
        Ok(count) => println!("{family} as {release}: {count} cases"),
        Err(differences) => panic!("{family} differs from {release}:\n{differences}"),
    }
}

macro_rules! families {
    ($($family:ident),* $(,)?) => {$(
        mod $family {
            const TEXT: &str = include_str!(concat!("../differential/", stringify!($family), ".txt"));

            #[test]
            fn as_redis_7_0() {
                super::compare(stringify!($family), TEXT, "7.0", &[]);
            }

            #[test]
            fn as_redis_7_4() {
                super::compare(stringify!($family), TEXT, "7.4", &[]);
            }
        }
    )*};
}

families! {
    acl,
    bitmaps,
    blocking,
    clients,
    connection,
    dump,
    expiry,
    geo,
    hash_expiry,
    hashes,
    hyperloglog,
    keys,
    lists,
    pubsub,
    scripting,
    server,
    sets,
    sort,
    sorted_sets,
    stream_groups,
    streams,
    strings,
    tracking,
    transactions,
}
