//! ACL SAVE and ACL LOAD with a file of users.

#![allow(clippy::disallowed_methods)]

use redlatch_core::wire::request::split_words;

use crate::support::server::Server;

const USERS: &str = "user default on nopass ~* &* +@all\nuser alice on >pw ~a* +@read +set\n";

const STEPS: &str = r#"
a ACL LIST
b AUTH alice pw
b ACL WHOAMI
a ACL SETUSER bob on >pw ~b* (+get ~c*) +@string
a ACL LOAD
a ACL USERS
b PING
a ACL SETUSER bob on >pw ~b* (+get ~c*) +@string
a ACL SAVE
a ACL DELUSER bob
a ACL LOAD
a ACL LIST
a ACL SETUSER alice -set
a ACL GETUSER alice
a ACL LOAD
a ACL GETUSER alice
c AUTH alice pw
a ACL SETUSER alice -set
a ACL LOAD
c PING
a ACL SAVE x
"#;

fn replies(server: &Server) -> Vec<(String, String)> {
    let mut clients = [(); 3].map(|()| server.connect());
    let steps = STEPS.lines().filter(|line| !line.is_empty()).map(|line| {
        let client = &mut clients[usize::from(line.as_bytes()[0] - b'a')];
        let words = split_words(&line.as_bytes()[2..]).unwrap();
        (line.to_owned(), String::from_utf8_lossy(&client.call(&words)).into_owned())
    });
    steps.collect()
}

#[test]
fn users_are_saved_and_loaded_as_by_the_release() {
    let folder = std::env::temp_dir().join(format!("redlatch-acl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for release in ["7.0", "7.4", "8.6", "valkey-9.1"] {
        let file = |owner: &str| {
            let path = folder.join(format!("{release}-{owner}.acl"));
            std::fs::write(&path, USERS).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let Some(theirs) = Server::redis(release, &["--aclfile", &file("theirs")]) else { return };
        let ours = Server::redlatch(release, &["--aclfile", &file("ours")]);
        assert_eq!(replies(&ours), replies(&theirs), "{release}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
