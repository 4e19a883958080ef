//! Measures arming, moving, cancelling and firing a timer on a wheel with 1,000,000 other timers.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use redlatch_core::wheel::{TimerId, Wheel};

const TIMERS: usize = 1_000_000;
const LEASE_MS: u64 = 30_000;

/// A fixed sequence of well-mixed random numbers (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Returns a wheel with leases that end within the next hour, and the ids of their timers.
fn full_wheel(draws: &mut Draws) -> (Wheel<u64>, Vec<TimerId>) {
    let mut wheel = Wheel::new(1_700_000_000_000);
    let ids = (0..TIMERS as u64).map(|i| wheel.arm(1_700_000_000_000 + draws.below(3_600_000), i)).collect();
    (wheel, ids)
}

fn wheel(c: &mut Criterion) {
    let mut draws = Draws(1);
    let (mut wheel, mut ids) = full_wheel(&mut draws);
    let mut now_ms = 1_700_000_000_000;
    let mut group = c.benchmark_group("wheel with 1,000,000 timers");

    group.bench_function("rearm a random one", |b| {
        b.iter(|| {
            let id = ids[draws.below(TIMERS as u64) as usize];
            black_box(wheel.rearm(id, now_ms + LEASE_MS + draws.below(1_000)))
        })
    });
    group.bench_function("rearm one lock's lease again and again", |b| {
        let mut ms = 0;
        b.iter(|| {
            ms += 1;
            black_box(wheel.rearm(ids[0], now_ms + LEASE_MS + ms % 1_000))
        })
    });
    group.bench_function("arm one more and cancel it", |b| {
        b.iter(|| {
            let id = wheel.arm(now_ms + LEASE_MS + draws.below(1_000), 0);
            black_box(wheel.cancel(id))
        })
    });
    group.bench_function("cancel a random one and arm another", |b| {
        b.iter(|| {
            let which = draws.below(TIMERS as u64) as usize;
            black_box(wheel.cancel(ids[which]));
            ids[which] = wheel.arm(now_ms + draws.below(3_600_000), which as u64);
        })
    });
    group.bench_function("advance 1 ms, fire what is due and arm it anew", |b| {
        b.iter(|| {
            now_ms += 1;
            while let Some((_, payload)) = wheel.pop_due(now_ms) {
                wheel.arm(now_ms + 1 + draws.below(3_600_000), payload);
            }
        })
    });
    group.finish();

    c.bench_function("arm 1,000,000 timers", |b| {
        b.iter_batched(|| Draws(2), |mut draws| full_wheel(&mut draws).0.len(), BatchSize::PerIteration)
    });
    c.bench_function("jump over an empty hour", |b| {
        let mut wheel = Wheel::new(0);
        let mut now_ms = 0;
        b.iter(|| {
            wheel.arm(now_ms + 3_600_000, ());
            now_ms += 3_600_000;
            black_box(wheel.pop_due(now_ms))
        })
    });
}

criterion_group!(benches, wheel);
criterion_main!(benches);
