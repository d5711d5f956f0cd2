//! Addresses of a call stack.

use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;

/// Addresses of a call stack as a record stores them, innermost first.
///
/// ```
/// use etl_format::constants::PointerSize;
/// use etl_schema::views::Frames;
///
/// let frames = Frames::new(&[0x10, 0, 0, 0, 0x20, 0, 0, 0], PointerSize::P4);
/// assert_eq!(frames.iter().collect::<Vec<_>>(), [0x10, 0x20]);
/// assert_eq!(frames.first(1).len(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    wide: bool,
}

impl<'a> Frames<'a> {
    /// Addresses of this width; bytes after the last whole one are left out.
    #[must_use]
    pub fn new(bytes: &'a [u8], pointers: PointerSize) -> Self {
        Frames {
            bytes,
            wide: pointers == PointerSize::P8,
        }
    }

    const fn width(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Number of addresses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width()
    }

    /// Whether no bytes follow the last address.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len().is_multiple_of(self.width())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The innermost ones, at most this many.
    #[must_use]
    pub fn first(self, max: usize) -> Self {
        let bytes = max.saturating_mul(self.width()).min(self.bytes.len());
        Frames {
            bytes: self.bytes.get(..bytes).unwrap_or_default(),
            ..self
        }
    }

    /// The address at an index.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        let offset = index.checked_mul(self.width())?;
        if self.wide {
            self.bytes.u64_at(offset)
        } else {
            self.bytes.u32_at(offset).map(u64::from)
        }
    }

    /// The stored bytes of each address; `None` if addresses have four bytes.
    #[inline]
    #[must_use]
    pub fn as_wide(&self) -> Option<&'a [[u8; 8]]> {
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
    fn iter_leaves_out_an_incomplete_address() {
        let bytes: Vec<u8> = (1..=19).collect();
        let wide = Frames::new(&bytes, PointerSize::P8);
        let all = [0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09];
        assert_eq!(wide.iter().collect::<Vec<_>>(), all);
        let chunks = wide
            .as_wide()
            .unwrap()
            .iter()
            .map(|a| u64::from_le_bytes(*a));
        assert_eq!(chunks.collect::<Vec<_>>(), all);
        let narrow = Frames::new(&bytes, PointerSize::P4);
        let four = [0x0403_0201, 0x0807_0605, 0x0c0b_0a09, 0x100f_0e0d];
        assert_eq!(narrow.iter().collect::<Vec<_>>(), four);
        assert_eq!((narrow.len(), narrow.as_wide()), (4, None));
        assert_eq!(narrow.first(3).iter().collect::<Vec<_>>(), four[..3]);
        assert_eq!((wide.first(1).len(), wide.first(9).len()), (1, 2));
    }
}
