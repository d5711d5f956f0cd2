//! Runs one hot loop a number of times, for tools that count: `etl-bench LOOP TIMES`.
//!
//! `scripts/instructions.py` counts the instructions of every loop under callgrind with it.

use etl_bench::{Inputs, Loop};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (name, times) = (arguments.next().unwrap_or_default(), arguments.next());
    let times: u32 = times.and_then(|times| times.parse().ok()).unwrap_or(1);
    let Some(which) = Loop::ALL.into_iter().find(|each| each.to_string() == name) else {
        Loop::ALL.iter().for_each(|each| println!("{each}"));
        return;
    };
    let inputs = Inputs::new();
    for _ in 0..times {
        which.run(&inputs);
    }
}
