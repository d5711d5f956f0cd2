//! Times of the hot loops: `cargo bench -p etl-bench`.

use divan::Bencher;
use divan::counter::BytesCount;
use etl_bench::{Inputs, Loop};

fn main() {
    divan::main();
}

#[divan::bench(args = Loop::ALL)]
fn loops(bencher: Bencher<'_, '_>, which: Loop) {
    let inputs = Inputs::new();
    let bytes = BytesCount::new(inputs.bytes(which).len());
    bencher.counter(bytes).bench_local(|| which.run(&inputs));
}
