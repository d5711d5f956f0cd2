//! Copies earlier output again: the inner step of every LZ77 decoder.

/// Appends `len` bytes to the `at` bytes produced so far, each the one `distance` before it; stops
/// at the end of `output`. Returns the number of bytes produced so far, or `None` when the distance
/// reaches before the beginning.
#[inline(always)]
pub(super) fn repeat(output: &mut [u8], at: usize, distance: usize, len: usize) -> Option<usize> {
    let from = at.checked_sub(distance)?;
    let end = at.checked_add(len)?;
    // Most repetitions are no longer than these two steps, which may write some bytes too many;
    // later output overwrites them.
    if distance < WIDE || len > BOTH || at + BOTH > output.len() {
        return others(output, at, distance, end);
    }
    // All offsets count from one end of the window, so that the compiler needs one bounds check
    // only.
    let window = output.get_mut(from..at + BOTH)?;
    let step: [u8; WIDE] = *window.first_chunk()?;
    *window.last_chunk_mut::<BOTH>()?.first_chunk_mut()? = step;
    let step: [u8; WIDE] = *window.first_chunk::<BOTH>()?.last_chunk()?;
    *window.last_chunk_mut()? = step;
    Some(end)
}

/// Repetitions that are long, near or at the end. They are apart so that the common step keeps its
/// state in registers.
#[cold]
#[inline(never)]
fn others(output: &mut [u8], at: usize, distance: usize, end: usize) -> Option<usize> {
    let from = at.checked_sub(distance)?;
    if end + BOTH > output.len() || distance == 0 {
        return checked_copy(output, at, distance, end.min(output.len()));
    }
    match distance {
        WIDE.. => steps::<WIDE>(output, from, at, end)?,
        NARROW.. => steps::<NARROW>(output, from, at, end)?,
        _ => overlapping(output, at, distance, end)?,
    }
    Some(end)
}

const WIDE: usize = 16;
/// Two of them.
const BOTH: usize = 2 * WIDE;
const NARROW: usize = 8;

/// Copies in steps of `N` bytes from `from` to `to` until `end` is reached; `from` and `to` must be
/// at least `N` apart.
#[inline(always)]
fn steps<const N: usize>(
    output: &mut [u8],
    mut from: usize,
    mut to: usize,
    end: usize,
) -> Option<()> {
    while to < end {
        copy::<N>(output, from, to)?;
        from += N;
        to += N;
    }
    Some(())
}

/// Copies `N` bytes.
#[inline(always)]
fn copy<const N: usize>(output: &mut [u8], from: usize, to: usize) -> Option<()> {
    let step: [u8; N] = *output.get(from..)?.first_chunk()?;
    *output.get_mut(to..)?.first_chunk_mut()? = step;
    Some(())
}

/// Distances below a narrow step: fills one narrow step with the pattern, and repeats it at a
/// multiple of its period.
#[inline(always)]
fn overlapping(output: &mut [u8], at: usize, distance: usize, end: usize) -> Option<()> {
    let pattern = *PATTERNS.get(distance)?;
    let first = u64::from_le_bytes(*output.get(at - distance..)?.first_chunk()?);
    let repeated = ((first & pattern.bytes).wrapping_mul(pattern.factor)).to_le_bytes();
    let mut to = at;
    loop {
        *output.get_mut(to..)?.first_chunk_mut()? = repeated;
        to += pattern.step;
        if to >= end {
            return Some(());
        }
    }
}

/// How the bytes of a short distance fill a narrow step.
#[derive(Clone, Copy)]
struct Pattern {
    /// Selects as many bytes as the distance has.
    bytes: u64,
    /// Repeats them: a bit at each multiple of the distance.
    factor: u64,
    /// The largest multiple of the distance in a narrow step.
    step: usize,
}

/// By distance.
const PATTERNS: [Pattern; NARROW] = {
    let mut patterns = [Pattern {
        bytes: 0,
        factor: 0,
        step: NARROW,
    }; NARROW];
    let mut distance = 1;
    while distance < NARROW {
        let (mut factor, mut at) = (0, 0);
        while at < NARROW {
            factor |= 1 << (8 * at);
            at += distance;
        }
        // Evaluated by the compiler, where an index out of bounds is an error of the build.
        #[allow(clippy::indexing_slicing)]
        let pattern = &mut patterns[distance];
        let bytes = (1 << (8 * distance)) - 1;
        *pattern = Pattern {
            bytes,
            factor,
            step: NARROW / distance * distance,
        };
        distance += 1;
    }
    patterns
};

/// Short distances, where source and target overlap, and the last bytes of the output.
#[inline(never)]
fn checked_copy(output: &mut [u8], at: usize, distance: usize, end: usize) -> Option<usize> {
    if distance == 0 {
        return None;
    }
    if distance == 1 {
        let byte = *output.get(at.checked_sub(1)?)?;
        output.get_mut(at..end)?.fill(byte);
        return Some(end);
    }
    // The appended bytes have the same period, so each pass can copy twice as much.
    let from = at.checked_sub(distance)?;
    let mut to = at;
    while to < end {
        let len = (end - to).min(to - from);
        if from + len > output.len() || to + len > output.len() {
            return None;
        }
        output.copy_within(from..from + len, to);
        to += len;
    }
    Some(end)
}
