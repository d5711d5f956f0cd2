//! Copies earlier output again: the inner step of every LZ77 decoder.

/// Appends `len` bytes to the `produced` bytes, each a copy of the byte `distance` before it; stops
/// at the end of `output`. Returns the number of bytes produced so far, or `None` if the distance
/// reaches before the beginning.
#[inline(always)]
pub(super) fn repeat(
    output: &mut [u8],
    produced: usize,
    distance: usize,
    len: usize,
) -> Option<usize> {
    let from = produced.checked_sub(distance)?;
    let end = produced.checked_add(len)?;
    // Most repetitions are no longer than these two steps, which may write some bytes too many;
    // later output overwrites them.
    if distance < WIDE || len > TWO_STEPS || produced + TWO_STEPS > output.len() {
        return repeat_in_steps(output, produced, distance, end);
    }
    // All offsets are relative to an end of the window, so that the compiler needs one bounds check
    // only.
    let window = output.get_mut(from..produced + TWO_STEPS)?;
    let step: [u8; WIDE] = *window.first_chunk()?;
    *window.last_chunk_mut::<TWO_STEPS>()?.first_chunk_mut()? = step;
    let step: [u8; WIDE] = *window.first_chunk::<TWO_STEPS>()?.last_chunk()?;
    *window.last_chunk_mut()? = step;
    Some(end)
}

/// Repetitions that are long, have a short distance, or are at the end of the output. This is a
/// function of its own so that the common step keeps its state in registers.
#[cold]
#[inline(never)]
fn repeat_in_steps(
    output: &mut [u8],
    produced: usize,
    distance: usize,
    end: usize,
) -> Option<usize> {
    let from = produced.checked_sub(distance)?;
    if end + TWO_STEPS > output.len() || distance == 0 {
        return checked_copy(output, produced, distance, end.min(output.len()));
    }
    match distance {
        WIDE.. => copy_steps::<WIDE>(output, from, produced, end)?,
        NARROW.. => copy_steps::<NARROW>(output, from, produced, end)?,
        _ => repeat_pattern(output, produced, distance, end)?,
    }
    Some(end)
}

/// Bytes of a usual step.
const WIDE: usize = 16;
const TWO_STEPS: usize = 2 * WIDE;
/// Bytes of a step for distances below [`WIDE`].
const NARROW: usize = 8;

/// Copies in steps of `N` bytes from `from` to `to` until `end` is reached; `from` and `to` must be
/// at least `N` apart.
#[inline(always)]
fn copy_steps<const N: usize>(
    output: &mut [u8],
    mut from: usize,
    mut to: usize,
    end: usize,
) -> Option<()> {
    while to < end {
        copy_step::<N>(output, from, to)?;
        from += N;
        to += N;
    }
    Some(())
}

/// Copies `N` bytes. Written into the loop of [`copy_steps`], these lines take a fifth more
/// instructions.
#[inline(always)]
fn copy_step<const N: usize>(output: &mut [u8], from: usize, to: usize) -> Option<()> {
    let step: [u8; N] = *output.get(from..)?.first_chunk()?;
    *output.get_mut(to..)?.first_chunk_mut()? = step;
    Some(())
}

/// Distances below a narrow step: fills one narrow step with the pattern, and repeats it at a
/// multiple of its period.
#[inline(always)]
fn repeat_pattern(output: &mut [u8], produced: usize, distance: usize, end: usize) -> Option<()> {
    let pattern = *PATTERNS.get(distance)?;
    let first = u64::from_le_bytes(*output.get(produced - distance..)?.first_chunk()?);
    let repeated = ((first & pattern.mask).wrapping_mul(pattern.factor)).to_le_bytes();
    let mut to = produced;
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
    /// Selects as many bytes as the distance.
    mask: u64,
    /// Repeats these bytes: it has a bit at each multiple of the distance.
    factor: u64,
    /// The largest multiple of the distance in a narrow step.
    step: usize,
}

/// By distance.
const PATTERNS: [Pattern; NARROW] = {
    let mut patterns = [Pattern {
        mask: 0,
        factor: 0,
        step: NARROW,
    }; NARROW];
    let mut distance = 1;
    while distance < NARROW {
        let mut factor = 0;
        let mut offset = 0;
        while offset < NARROW {
            factor |= 1 << (8 * offset);
            offset += distance;
        }
        // Evaluated by the compiler, where an index out of bounds is an error of the build.
        #[allow(clippy::indexing_slicing)]
        let pattern = &mut patterns[distance];
        *pattern = Pattern {
            mask: (1 << (8 * distance)) - 1,
            factor,
            step: NARROW / distance * distance,
        };
        distance += 1;
    }
    patterns
};

/// Short distances, where source and target overlap, and the last bytes of the output.
#[inline(never)]
fn checked_copy(output: &mut [u8], produced: usize, distance: usize, end: usize) -> Option<usize> {
    if distance == 0 {
        return None;
    }
    if distance == 1 {
        let byte = *output.get(produced.checked_sub(1)?)?;
        output.get_mut(produced..end)?.fill(byte);
        return Some(end);
    }
    // The appended bytes have the same period, so each pass can copy twice as much.
    let from = produced.checked_sub(distance)?;
    let mut to = produced;
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
