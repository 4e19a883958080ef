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

/// The tests of one family, one for each release.
macro_rules! family {
    ($family:ident [$($test:ident $release:literal),*]) => {
        const TEXT: &str = include_str!(concat!("../differential/", stringify!($family), ".txt"));

        $(
            #[test]
            fn $test() {
                super::compare(stringify!($family), TEXT, $release, &[]);
            }
        )*
    };
}

macro_rules! families {
    ($releases:tt $($family:ident),* $(,)?) => {$(
        mod $family {
            family! { $family $releases }
        }
    )*};
}

families! {
    [as_redis_7_0 "7.0", as_redis_7_4 "7.4", as_redis_8_6 "8.6", as_valkey_9_1 "valkey-9.1"]
    acl,
    bitmaps,
    blocking,
    clients,
    cluster,
    conditions,
    connection,
    dump,
    eviction,
    expiry,
    functions,
    geo,
    hash_ex,
    hash_expiry,
    hashes,
    hyperloglog,
    keys,
    lists,
    names,
    pubsub,
    scripting,
    server,
    settings,
    sets,
    sort,
    sorted_sets,
    strings,
    tracking,
    transactions,
}

families! {
    [
        as_redis_7_0 "7.0", as_redis_7_4 "7.4", as_redis_8_0 "8.0", as_redis_8_6 "8.6",
        as_valkey_8_1 "valkey-8.1", as_valkey_9_1 "valkey-9.1"
    ]
    stream_groups,
    streams,
}
