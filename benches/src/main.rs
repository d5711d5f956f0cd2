//! Runs one hot loop twice, for tools that count: `etl-bench LOOP`.
//!
//! `benches/lab/instructions.py` counts the instructions of the second run under callgrind.

use std::hint::black_box;

use etl_bench::{Inputs, Loop};

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(which) = Loop::ALL.into_iter().find(|each| each.to_string() == name) else {
        Loop::ALL.iter().for_each(|each| println!("{each}"));
        return;
    };
    let inputs = Inputs::new();
    // Tables that are made once are not counted.
    which.run(&inputs);
    counted(which, &inputs);
}

/// What callgrind counts, by this name. Simulating the input takes some thousand instructions more
/// or fewer each time, because the standard library's hash tables start with random keys.
#[inline(never)]
fn counted(which: Loop, inputs: &Inputs) {
    which.run(inputs);
    black_box(());
}
