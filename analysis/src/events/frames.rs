//! Addresses of a call stack as a record stores them.

use etl_format::cursor::Bytes;

/// Addresses, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    wide: bool,
}

impl<'a> Frames<'a> {
    /// Addresses of eight bytes if `wide`, else of four; a rest that is no whole one is left out.
    #[must_use]
    pub fn new(bytes: &'a [u8], wide: bool) -> Self {
        Frames { bytes, wide }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / if self.wide { 8 } else { 4 }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first of them, at most so many.
    #[must_use]
    pub fn first(self, most: usize) -> Self {
        let bytes = most.saturating_mul(if self.wide { 8 } else { 4 }).min(self.bytes.len());
        Frames { bytes: self.bytes.get(..bytes).unwrap_or_default(), ..self }
    }

    /// The address at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        if self.wide {
            self.bytes.u64_at(index.checked_mul(8)?)
        } else {
            self.bytes.u32_at(index.checked_mul(4)?).map(u64::from)
        }
    }

    /// The addresses that are stored in eight bytes, as they are stored.
    #[inline]
    #[must_use]
    pub fn wide(&self) -> Option<&'a [[u8; 8]]> {
        self.wide.then_some(self.bytes.as_chunks().0)
    }

    /// The addresses.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let frames = *self;
        (0..self.len()).filter_map(move |index| frames.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_left_out() {
        let bytes: Vec<u8> = (1..=19).collect();
        let wide = Frames::new(&bytes, true);
        let all = [0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09];
        assert_eq!(wide.iter().collect::<Vec<_>>(), all);
        assert_eq!(
            wide.wide().unwrap().iter().map(|a| u64::from_le_bytes(*a)).collect::<Vec<_>>(),
            all
        );
        let narrow = Frames::new(&bytes, false);
        assert_eq!(
            narrow.iter().collect::<Vec<_>>(),
            [0x0403_0201, 0x0807_0605, 0x0c0b_0a09, 0x100f_0e0d]
        );
        assert_eq!((narrow.len(), narrow.wide()), (4, None));
        assert_eq!(
            narrow.first(3).iter().collect::<Vec<_>>(),
            narrow.iter().collect::<Vec<_>>()[..3]
        );
        assert_eq!((wide.first(1).len(), wide.first(9).len()), (1, 2));
    }
}
