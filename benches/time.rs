//! Measures the time that parts of the server take. Run with `cargo bench --bench time`.

#[path = "support/in_process.rs"]
mod in_process;
#[path = "support/parts.rs"]
mod parts;

use criterion::{Criterion, criterion_group, criterion_main};

fn parts(criterion: &mut Criterion) {
    for (name, prepare) in parts::PARTS {
        let mut run = prepare();
        criterion.bench_function(name, |bencher| bencher.iter(&mut run));
    }
}

criterion_group!(benches, parts);
criterion_main!(benches);
