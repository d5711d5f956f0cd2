//! Runs the fuzz target that `FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use etl_tests::fuzz::{Target, find, mutate};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

static TARGET: LazyLock<&'static Target> =
    LazyLock::new(|| find(&std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target")));

fuzz_target!(|data: &[u8]| (TARGET.run)(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    change(&TARGET, data, size, max_size, seed)
});

/// Changes an input of `size` bytes in place, to at most `max_size`. Returns its new size.
///
/// Half of the changes to a trace respect its structure.
fn change(target: &Target, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let structured = target.trace && size > 0x48 && seed & 1 == 1;
    if !structured {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut bytes = data[..size].to_vec();
    mutate::trace(&mut bytes, max_size, seed);
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}
