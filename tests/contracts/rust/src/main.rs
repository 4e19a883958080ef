//! redis-rs, as tests/contracts/README.md describes it: contract SHAPE PORT...

use std::io::{BufRead, Write};
use std::process::exit;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use redis::cluster::{ClusterClient, ClusterConnection, ClusterPipeline};
use redis::sentinel::Sentinel;
use redis::{Client, Connection, ConnectionLike, RedisResult, Script, Value, cmd, pipe};

const KEPT: &str = "{contract}:kept";
const LOCK: &str = "{contract}:lock";
const CHANNEL: &str = "{contract}:news";
const COUNTER: &str = "{contract}:counter";
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

type Failure = Box<dyn std::error::Error>;

enum Link {
    One(Connection),
    Cluster(Box<ClusterConnection>),
}

impl Link {
    fn any(&mut self) -> &mut dyn ConnectionLike {
        match self {
            Link::One(connection) => connection,
            Link::Cluster(connection) => connection.as_mut(),
        }
    }

    fn call<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T> {
        let mut command = cmd(words[0]);
        words[1..].iter().for_each(|word| drop(command.arg(*word)));
        Ok(redis::from_redis_value(self.any().req_command(&command)?)?)
    }
}

struct Contract {
    shape: String,
    urls: Vec<String>,
    link: Option<Link>,
    messages: Option<Receiver<String>>,
}

impl Contract {
    /// Returns a client of the server that is the master now. Nodes of a cluster have the messages of all.
    fn client(&self) -> Result<Client, Failure> {
        if self.shape == "sentinel" {
            let mut sentinels = Sentinel::build(self.urls.clone())?;
            return Ok(sentinels.master_for("mymaster", None)?);
        }
        for url in &self.urls {
            let client = Client::open(url.as_str())?;
            let Ok(mut connection) = client.get_connection() else { continue };
            let role: Vec<Value> = cmd("ROLE").query(&mut connection)?;
            if matches!(&role[0], Value::BulkString(role) if role == b"master") {
                return Ok(client);
            }
        }
        Err("no master answers".into())
    }

    fn open(&self) -> Result<Link, Failure> {
        if self.shape == "cluster" {
            return Ok(Link::Cluster(Box::new(ClusterClient::new(self.urls.clone())?.get_connection()?)));
        }
        Ok(Link::One(self.client()?.get_connection()?))
    }

    fn link(&mut self) -> &mut Link {
        self.link.as_mut().expect("the first step connects")
    }

    fn acquires(&mut self, key: &str, token: &str) -> RedisResult<bool> {
        let reply: Option<String> = self.link().call(&["SET", key, token, "NX", "PX", "60000"])?;
        Ok(reply.is_some())
    }

    fn releases(&mut self, key: &str, token: &str) -> RedisResult<bool> {
        let script = Script::new(RELEASE);
        let mut call = script.key(key);
        call.arg(token);
        let removed: i64 = match self.link() {
            Link::One(connection) => call.invoke(connection)?,
            Link::Cluster(connection) => call.invoke(connection.as_mut())?,
        };
        Ok(removed == 1)
    }

    fn connect(&mut self) -> Result<(), Failure> {
        self.link = Some(self.open()?);
        Ok(self.link().call(&["DEL", KEPT, LOCK, COUNTER])?)
    }

    fn lock(&mut self) -> Result<(), Failure> {
        let holds =
            self.acquires(KEPT, "one")? && !self.acquires(KEPT, "two")? && !self.releases(KEPT, "two")?;
        check(holds && self.acquires(LOCK, "one")? && self.releases(LOCK, "one")?, "lock")
    }

    /// Subscribes on a connection of its own, whose messages a thread passes on.
    fn pubsub(&mut self) -> Result<(), Failure> {
        let mut connection = self.client()?.get_connection()?;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut subscription = connection.as_pubsub();
            if subscription.subscribe(CHANNEL).is_err() {
                return;
            }
            while let Ok(text) = subscription.get_message().and_then(|message| Ok(message.get_payload()?)) {
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        self.messages = Some(receiver);
        self.message("before")
    }

    /// Waits for a message, and sends it until it comes.
    fn message(&mut self, text: &str) -> Result<(), Failure> {
        until(|| {
            let _: i64 = self.link().call(&["PUBLISH", CHANNEL, text])?;
            let messages = self.messages.as_ref().ok_or("no subscription")?;
            check(messages.recv_timeout(Duration::from_millis(200))? == text, "another message")
        })
    }

    fn pipeline(&mut self) -> Result<(), Failure> {
        let counts: Vec<i64> = match self.link() {
            Link::One(connection) => {
                let mut pipeline = pipe();
                (0..100).for_each(|_| drop(pipeline.cmd("INCR").arg(COUNTER)));
                pipeline.query(connection)?
            }
            Link::Cluster(connection) => {
                let mut pipeline = ClusterPipeline::new();
                (0..100).for_each(|_| drop(pipeline.cmd("INCR").arg(COUNTER)));
                pipeline.query(connection)?
            }
        };
        check(counts == Vec::from_iter(1..=100), "another count")
    }

    fn script(&mut self) -> Result<(), Failure> {
        let _: Value = self.link().call(&["SCRIPT", "FLUSH"])?;
        check(self.acquires(LOCK, "one")? && self.releases(LOCK, "one")?, "lock")
    }

    /// A connection does not come back by itself, nor does that to a cluster ask for the slots again when a node is gone.
    fn reconnect(&mut self) -> Result<(), Failure> {
        until(|| {
            self.link = Some(self.open()?);
            Ok(self.link().call(&["SET", COUNTER, "1"])?)
        })
    }

    fn kept(&mut self) -> Result<(), Failure> {
        check(!self.acquires(KEPT, "two")? && self.releases(KEPT, "one")?, "the lock is lost")
    }

    fn relock(&mut self) -> Result<(), Failure> {
        check(self.acquires(KEPT, "two")? && self.releases(KEPT, "two")?, "lock")
    }

    /// Subscriptions end with their connections.
    fn resubscribe(&mut self) -> Result<(), Failure> {
        self.pubsub()?;
        self.message("after")
    }
}

fn check(holds: bool, what: &'static str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Tries until there is no error.
fn until(mut what: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match what() {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            outcome => return outcome,
        }
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let shape = words.next().unwrap_or_default();
    let urls = words.map(|port| format!("redis://127.0.0.1:{port}")).collect();
    let mut contract = Contract { shape, urls, link: None, messages: None };
    let fail: fn(&mut Contract) -> Result<(), Failure> = |_| {
        println!("ready");
        std::io::stdout().flush()?;
        std::io::stdin().lock().read_line(&mut String::new())?;
        Ok(())
    };
    let steps: [(&str, fn(&mut Contract) -> Result<(), Failure>); 10] = [
        ("connect", Contract::connect),
        ("lock", Contract::lock),
        ("pubsub", Contract::pubsub),
        ("pipeline", Contract::pipeline),
        ("script", Contract::script),
        ("fail", fail),
        ("reconnect", Contract::reconnect),
        ("kept", Contract::kept),
        ("relock", Contract::relock),
        ("resubscribe", Contract::resubscribe),
    ];
    for (name, run) in steps {
        let begin = Instant::now();
        if let Err(error) = run(&mut contract) {
            println!("{name} failed: {error}");
            exit(1);
        }
        if name != "fail" {
            println!("{name} ok {} ms", begin.elapsed().as_millis());
        }
    }
}
