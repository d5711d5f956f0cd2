//! Texts that stand one behind the other.

/// How many texts in UTF-16, each ended by its NUL, `bytes` is made of; `None` where something stands behind the last one.
///
/// To count the NULs takes a fraction of what it takes to find each of them.
#[must_use]
pub fn whole_texts(bytes: &[u8]) -> Option<usize> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    if units.last() != Some(&[0, 0]) {
        return None;
    }
    // Sums of 16 bits are made eight at a time, and cannot overflow.
    let nuls = |units: &[[u8; 2]]| {
        units.iter().fold(0u16, |sum, unit| sum + u16::from(u16::from_le_bytes(*unit) == 0))
    };
    Some(units.chunks(1 << 12).map(|units| usize::from(nuls(units))).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_format::cursor::Cursor;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_counts_what_a_cursor_steps_over(
            units in proptest::collection::vec(0u16..3, 0..80), odd: bool
        ) {
            let mut bytes: Vec<_> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            bytes.extend(odd.then_some(0));
            let mut cursor = Cursor::new(&bytes);
            let steps = std::iter::from_fn(|| cursor.utf16z()).count();
            let whole = cursor.rest().is_empty() && steps > 0;
            prop_assert_eq!(whole_texts(&bytes), whole.then_some(steps));
        }
    }

    #[test]
    fn there_may_be_many() {
        assert_eq!(whole_texts(&[0; 140_000]), Some(70_000));
    }
}
