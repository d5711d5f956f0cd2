//! Numbers and lines in a block, and how a repeated item is written.

/// Reads numbers of 7 bits per byte, and bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers<'a>(pub &'a [u8]);

impl<'a> Numbers<'a> {
    pub fn next(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if *byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn size(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }

    /// A number, and as many bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.size()?;
        self.take(size)
    }

    pub fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Appends a number as [`Numbers`] reads it.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines<'a>(pub &'a str);

impl<'a> Lines<'a> {
    pub fn next(&mut self) -> Option<&'a str> {
        let (line, rest) = self.0.split_once('\n')?;
        self.0 = rest;
        Some(line)
    }
}

/// Reads items that repeat. A new item is written as 0 and its content; another item as the number
/// of items since it was written last.
#[derive(Clone, Debug)]
pub(crate) struct Recent<T> {
    items: Vec<T>,
    /// Indices of `items`, in the order of use.
    used: Vec<usize>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent {
            items: Vec::new(),
            used: Vec::new(),
        }
    }
}

impl<T> Recent<T> {
    /// The next item.
    pub fn read(
        &mut self,
        numbers: &mut Numbers<'_>,
        new: impl FnOnce() -> Option<T>,
    ) -> Option<&T> {
        let index = match numbers.size()? {
            0 => {
                self.items.push(new()?);
                self.items.len() - 1
            }
            distance => *self.used.get(self.used.len().checked_sub(distance)?)?,
        };
        self.used.push(index);
        self.items.get(index)
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.used.clear();
    }
}

/// Writes items that repeat, as [`Recent`] reads them.
#[derive(Debug)]
pub(crate) struct Repeated<T> {
    /// The number of each item when it was written last.
    last: std::collections::HashMap<T, u32>,
    count: u32,
}

impl<T> Default for Repeated<T> {
    fn default() -> Self {
        Repeated {
            last: Default::default(),
            count: 0,
        }
    }
}

impl<T: std::hash::Hash + Eq> Repeated<T> {
    /// Writes an item; `true` if it is new, so that its content has to be written.
    pub fn write(&mut self, out: &mut Vec<u8>, item: T) -> bool {
        let last = self.last.insert(item, self.count);
        put(out, last.map_or(0, |last| self.count - last));
        self.count += 1;
        last.is_none()
    }

    pub fn clear(&mut self) {
        self.last.clear();
        self.count = 0;
    }
}
