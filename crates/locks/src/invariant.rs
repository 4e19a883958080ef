//! The invariants of lock objects.

/// Declares the invariants. `--invariant` and reports use their ids.
macro_rules! invariants {
    ($($id:ident $text:literal)*) => {
        /// An invariant of a lock object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Invariant { $($id),* }

        impl Invariant {
            pub const ALL: &[Invariant] = &[$(Invariant::$id),*];

            /// Returns the id that options and reports use.
            pub fn id(self) -> &'static str {
                match self { $(Invariant::$id => stringify!($id)),* }
            }

            /// Returns the invariant as a sentence.
            pub fn text(self) -> &'static str {
                match self { $(Invariant::$id => $text),* }
            }
        }
    };
}

invariants! {
    G1 "a script runs in one go: no time passes and nobody else is served in between"
    G2 "a request that is sent again gets the same reply"
    G3 "a request that is sent again takes effect once"
    G4 "no script fails, even when a companion key was lost"
    G5 "once everything has ended no key is left"
    G6 "all keys of an object have one slot in a cluster"
    G7 "a held lock has a lease, and none longer than what was asked for"
    G8 "a script writes no keys but those of its object"
    M1 "no two owners hold leases that exclude one another"
    M2 "a lease that was granted is kept: the key lives at least as long"
    M3 "a release that lets waiters on tells them"
    M4 "only the owner's renewal changes the lease"
    M5 "a renewal says whether its owner still holds the lock"
    A1 "holds are counted: an operation changes its owner's holds and no others"
    A2 "who may have the lock gets it, who may not does not"
    T1 "a grant sets the lease that was asked for"
    T2 "who is refused is told how long the lock is still held"
    U1 "an unlock by who does not hold the lock says so and changes nothing"
    U2 "an unlock says whether the lock is still held"
    H1 "no two clients are told that they hold a lock at the same time, at any node"
    H2 "a lock is there until its lease is over or somebody releases it"
    H3 "a release succeeds only for the owner of the lock"
    H4 "a lock is free after as many releases as grants"
    RW1 "a renewal keeps all holds of its owner"
    RW2 "nobody changes the lease of another reader's hold"
    RW3 "when a waiting reader or writer may go on, somebody is told"
    RW4 "when several readers may go on, the message wakes them all"
    RW5 "a hold has a key of its own, which ends with it"
    F1 "the first live waiter of the queue is served first"
    F2 "the first of the queue has a deadline, so that the dead do not block the living"
    F3 "no deadline is later than the lease and the waits before it add up to"
    F4 "a queued waiter is told no more than what the lock is still held for"
    F5 "queue and deadlines name the same waiters"
    F6 "who gave up waits no longer"
    F7 "a waiter who cannot have the lock is not told to try at once"
    F8 "a waiter has the time that it asked for, from when its turn can come"
    F9 "nobody but itself removes a live waiter"
    F10 "waiters are queued in the order in which they came"
    P1 "permits available and permits held are as many as there were set"
    P2 "the permits held live as long as the semaphore"
    P3 "the release of an expired permit does not succeed"
    P4 "several permits are released all or none"
    P5 "what is available counts permits that have expired"
    P6 "who changes nothing tells nobody"
    S1 "no more permits are held than there are"
    Q1 "permits change by what was asked for"
    Q2 "an increase tells waiters"
    Q3 "waiters are not told a negative number"
    Q4 "waiters are told how many permits they may ask for"
    Q5 "a semaphore lives as long as was asked for"
    V1 "a question about the state gets the true answer"
    V2 "a reply is one of those that were stated"
    L1 "no more permits are granted in an interval than the rate"
    L2 "permits left and permits handed out are as many as the rate"
    L3 "who is refused is told to ask again later, and within an interval"
    L4 "a limiter has the rate, the interval and the lifetime that were asked for"
    L5 "permits that are given back can be granted again"
    R1 "who was told that it has the lock has the leases of enough nodes"
    R2 "an attempt that failed leaves no hold at a node that could be reached"
    K1 "tokens only go up"
    K2 "an owner has one token until it has let the lock go"
    K3 "who gets the lock is told the token that was drawn"
    P7 "a permit that is named twice in one release counts once"
    P8 "an operation that looks for expired permits frees them"
    C1 "the count goes down by one for each request and never below nought"
    C2 "reaching nought is told once"
    C3 "a request for a latch says what it did"
    C4 "a new count closes the latch for those who wait"
    C5 "the message of an open latch opens it for those who wait"
}

impl Invariant {
    /// Returns the invariant with an id.
    pub fn find(id: &str) -> Option<Invariant> {
        Invariant::ALL.iter().copied().find(|invariant| invariant.id().eq_ignore_ascii_case(id))
    }
}

/// The strictness of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Judges by what users of a lock would expect.
    Strict,
    /// Permits what Redisson documents or clearly intends: the leases of re-entrant write locks add up, unlocking a
    /// free fair lock succeeds, a re-entrant acquire may shorten the lease.
    #[default]
    AsDocumented,
}
