//! ACL SAVE and ACL LOAD with a file of users.

#![allow(clippy::disallowed_methods)]

use redlatch_core::wire::request::split_words;

use crate::support::client::Client;
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

/// Texts that somebody else writes to the file. No opening parenthesis is left alone: that ends redis-server 7.0.
const FILES: &[&str] = &[
    "user default on nopass ~* &* +@all\nuser eve on nopass ~* +@all\n",
    "user default on nopass ~* &* +@all\n\n# c\n",
    "user\n",
    "foo bar\n",
    "user a on\nuser a off\n",
    "user a +nosuch +foo ~* %x\n",
    "user a 'b\n",
    "user a #12 #34\nuser b %Z~x\nuser c on +get|x|y\n",
    "  user a on >p  \r\n\tuser b  on >q (+get ~k)\t\n",
    "user a on -@nosuch\nxx\n",
    " \n",
    "USER a on\n",
];

#[test]
fn the_file_that_somebody_else_has_written_is_read() {
    let folder = std::env::temp_dir().join(format!("redlatch-acl-read-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for release in ["7.0", "7.4", "8.6", "valkey-9.1"] {
        let path = folder.join("users.acl");
        std::fs::write(&path, USERS).unwrap();
        let file = path.to_str().unwrap();
        let Some(theirs) = Server::redis(release, &["--aclfile", file]) else { return };
        let ours = Server::redlatch(release, &["--aclfile", file]);
        let mut clients = [ours.connect(), theirs.connect()];
        let both = |clients: &mut [Client; 2], words: &[&str]| {
            let replies = clients.each_mut().map(|client| {
                client.send(words);
                String::from_utf8_lossy(&client.receive()).into_owned()
            });
            assert_eq!(replies[0], replies[1], "{release}: {words:?}");
            replies[0].clone()
        };
        for text in FILES {
            std::fs::write(&path, text).unwrap();
            both(&mut clients, &["ACL", "LOAD"]);
            both(&mut clients, &["ACL", "LIST"]);
        }
        std::fs::remove_file(&path).unwrap();
        both(&mut clients, &["ACL", "LOAD"]);
        both(&mut clients, &["ACL", "SETUSER", "dave", "on", ">p", "~k", "+get", "(~x +set)"]);
        both(&mut clients, &["ACL", "SAVE"]);
        let saved = std::fs::read_to_string(&path).unwrap();
        clients[0].send(&["ACL", "SAVE"]);
        clients[0].receive();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), saved, "{release}");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        both(&mut clients, &["ACL", "SAVE"]);
        std::fs::remove_dir(&path).unwrap();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
