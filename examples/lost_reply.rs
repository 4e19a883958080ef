//! A lost reply, over real sockets: the server executes an acquire, its reply never comes, and the client tries again.
//!
//! Run it with `cargo run --example lost_reply`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use redlatch::{Action, Clause, ClockMode, Match, Rule, ServerOptions, Stage, TestServer, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestServer::start(ServerOptions::default().clock(ClockMode::Manual))?;
    println!("the server listens on {}", server.url(0));

    let mut first = TcpStream::connect(server.addr(0))?;
    let acquire = Match::any().and(Clause::Cmd(b"set".to_vec())).and(Clause::Key(b"lock".to_vec()));
    let lost = server.control().fault(Rule::new(acquire, Action::Drop(Stage::Reply)).times(1))?;

    first.write_all(b"SET lock a NX PX 30000\r\n")?;
    assert_eq!(receive(&mut first)?, None);
    assert_eq!(lost.hits(), 1);
    println!("a acquires; the server executes it, and the reply is lost");

    // With TCP, what follows a lost reply is lost too: the client connects anew.
    let mut second = TcpStream::connect(server.addr(0))?;
    second.write_all(b"SET lock a NX PX 30000\r\n")?;
    assert_eq!(receive(&mut second)?, Some(Value::Nil));
    println!("a tries again and is refused: by its own lock");

    second.write_all(b"GET lock\r\n")?;
    assert_eq!(receive(&mut second)?, Some(Value::Bulk(b"a".to_vec())));
    println!("a client that compares the owner before it gives up knows that it holds the lock");

    assert_eq!(server.control().advance(30_001)?.expired, 1);
    second.write_all(b"SET lock b NX PX 30000\r\n")?;
    assert_eq!(receive(&mut second)?, Some(Value::Status("OK".to_owned())));
    println!("one that does not keeps everybody out until the lease has expired");
    Ok(())
}

/// Reads one reply; none if nothing comes.
fn receive(stream: &mut TcpStream) -> Result<Option<Value>, Box<dyn std::error::Error>> {
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    let mut bytes = Vec::new();
    let mut buf = [0; 1024];
    loop {
        match stream.read(&mut buf) {
            Ok(0) => return Err("the server has closed the connection".into()),
            Ok(len) => bytes.extend_from_slice(&buf[..len]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        if let Some((value, _)) = Value::decode(&bytes)? {
            return Ok(Some(value));
        }
    }
}

#[test]
fn every_assertion_holds() {
    main().unwrap();
}
