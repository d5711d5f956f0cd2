//! The id of a stack: a hash that is the same in every run.

use etl_format::ProcessId;

/// A hash of two numbers.
const fn mix(hash: u64, value: u64) -> u64 {
    // The finalizer of splitmix64, over the sum.
    let mut x = (hash ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The id of the stack of a process, innermost address first.
pub(crate) fn stack_id(pid: Option<ProcessId>, addresses: impl Iterator<Item = u64>) -> i64 {
    let pid = match pid {
        Some(pid) => pid.get().into(),
        None => u64::MAX,
    };
    addresses.fold(mix(0, pid), mix) as i64
}
