//! A lock that outlives a pause of its owner: the lease expires while the owner is stopped, a second owner gets in, and the first writes
//! anyway. A fencing token would have told the store which write is late.
//!
//! Run it with `cargo run --example lease_expires`.

use redlatch::{Client, Fence, Sim, SimOptions, Value};

const LEASE_MS: &str = "30000";

/// Sets the lock if it is free, and counts up a fencing token with each grant.
const ACQUIRE: &str = "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then \
    return redis.call('incr', KEYS[2]) end return false";

/// Deletes the lock if it is still one's own.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sim = Sim::new(SimOptions::default());
    let (a, b) = (sim.connect(0), sim.connect(0));

    let token_a = acquire(&mut sim, a, "a")?.ok_or("the lock is free")?;
    println!("a holds the lock, with token {token_a}");
    assert_eq!(acquire(&mut sim, b, "b")?, None);
    println!("b is refused");

    println!("a stops: garbage collection, a debugger, a laptop that is closed …");
    let advanced = sim.control().advance(30_001)?;
    assert_eq!(advanced.expired, 1);
    println!("30 s later the lease has expired, and a does not know");

    let token_b = acquire(&mut sim, b, "b")?.ok_or("the lease has expired")?;
    println!("b holds the lock, with token {token_b}");
    assert!(token_b > token_a);

    // a goes on where it stopped. It thinks that it holds the lock.
    let mut control = sim.control();
    assert!(control.store_write("balance", "90", token_b, Fence::GreaterOrEqual)?);
    assert!(control.store_write("unfenced", "90", token_b, Fence::None)?);
    assert!(control.store_write("unfenced", "100", token_a, Fence::None)?);
    assert_eq!(control.store_read("unfenced")?.map(|(value, _)| value), Some(b"100".to_vec()));
    println!("a store that checks nothing takes the late write of a: the update of b is lost");
    assert!(!control.store_write("balance", "100", token_a, Fence::GreaterOrEqual)?);
    println!("a store that checks tokens refuses it");

    let released = sim.query(a, &["EVAL", RELEASE, "1", "lock", "a"])?;
    assert_eq!(released, Value::Int(0));
    assert_eq!(sim.query(a, &["GET", "lock"])?, Value::Bulk(b"b".to_vec()));
    println!("a's release finds the lock of b and leaves it alone");
    Ok(())
}

/// Returns the fencing token, or nothing if somebody else holds the lock.
fn acquire(sim: &mut Sim, client: Client, owner: &str) -> Result<Option<u64>, redlatch::CallError> {
    let reply = sim.query(client, &["EVAL", ACQUIRE, "2", "lock", "token", owner, LEASE_MS])?;
    Ok(reply.as_int().map(|token| token as u64))
}

#[test]
fn every_assertion_holds() {
    main().unwrap();
}
