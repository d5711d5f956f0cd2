//! What can go wrong with a finished file, by name.

use std::io;

use crate::etw::Store;
use crate::machine::Dice;
use crate::model::{Fault, SessionPlan};

/// Applies a fault to a file. Those that are no matter of the file (a clock that runs ahead, a
/// session that nobody stops) are the session's own and leave it alone here.
pub(crate) fn apply(
    fault: &Fault,
    file: &str,
    plan: &SessionPlan,
    dice: &mut Dice,
    store: &mut dyn Store,
) -> io::Result<()> {
    let buffer = plan.buffer_size as usize;
    match *fault {
        Fault::Truncated(percent) => store.change(file, &mut |bytes| {
            let keep = bytes.len() as u128 * u128::from(percent.min(100)) / 100;
            bytes.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
        }),
        Fault::Flipped(bits) => store.change(file, &mut |bytes| {
            let behind = bytes.len().saturating_sub(buffer);
            for _ in 0..bits {
                let (at, bit) = (buffer + dice.pick(behind), dice.below(8));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
        }),
        Fault::Torn => store.change(file, &mut |bytes| {
            // Only half of the last buffer reached the disk; the file has its length all the same.
            let from = bytes.len().saturating_sub(buffer / 2).max(buffer.min(bytes.len()));
            bytes.iter_mut().skip(from).for_each(|byte| *byte = 0);
        }),
        Fault::NotClosed | Fault::LostBuffers(_) | Fault::Skew(_) => Ok(()),
    }
}
