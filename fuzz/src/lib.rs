//! Gives the targets of [`etl_tests::fuzz`] to libFuzzer.

pub use {etl_tests, libfuzzer_sys};

use etl_tests::fuzz::{Target, mutate};

/// The entry points of a fuzzer: a target's body, and changes that know how a trace is built.
#[macro_export]
macro_rules! target {
    ($name:expr) => {
        static TARGET: std::sync::LazyLock<&'static $crate::etl_tests::fuzz::Target> =
            std::sync::LazyLock::new(|| $crate::etl_tests::fuzz::find(&$name));

        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));

        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                              size: usize,
                                              max_size: usize,
                                              seed: u32| {
            $crate::change(*TARGET, data, size, max_size, seed)
        });
    };
}

/// Changes an input of `size` bytes in place, to at most `most`; returns its new size.
pub fn change(target: &Target, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let own = target.trace && size > 0x48 && seed & 1 == 1;
    if !own {
        return libfuzzer_sys::fuzzer_mutate(data, size, most);
    }
    let mut bytes = data[..size].to_vec();
    mutate::trace(&mut bytes, most, seed);
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}
