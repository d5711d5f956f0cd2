//! Maps: names of values and of bits.

use super::Text;

/// Whether the entries of a map name whole values or single bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// An entry names a value.
    Values,
    /// An entry names a bit or a group of bits.
    Bits,
    /// An entry replaces a pattern in a text; [`ValueMap::patterns`] has the entries. Windows reads
    /// such maps and does not use them, and neither does the rendering here.
    Patterns,
}

/// An entry of a pattern map: what to look for in a text, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The expression to look for.
    pub pattern: Text,
    /// The replacement.
    pub text: Text,
}

/// A named value or bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapEntry {
    /// The value, or the bits.
    pub value: u64,
    /// Its name.
    pub name: Text,
}

/// A value map, bit map or pattern map (`valueMap`, `bitMap`, `patternMap` of a manifest).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMap {
    name: Text,
    kind: MapKind,
    entries: Vec<MapEntry>,
    /// Values of a group of bits, with the mask of the group.
    parts: Vec<(u64, MapEntry)>,
    patterns: Vec<Pattern>,
    format: Text,
}

impl ValueMap {
    /// From entries in any order. If several entries have the same value, the first one is used.
    ///
    /// ```
    /// use etl_schema::{MapEntry, MapKind, ValueMap};
    ///
    /// let one = MapEntry { value: 1, name: "One".into() };
    /// let two = MapEntry { value: 2, name: "Two".into() };
    /// let map = ValueMap::new("Flags", MapKind::Bits, vec![two, one]);
    /// assert_eq!(map.get(2), Some("Two"));
    /// assert_eq!(map.bits(3).collect::<Vec<_>>(), ["One", "Two"]);
    /// assert_eq!(map.unnamed(9), 8);
    /// ```
    #[must_use]
    pub fn new(name: impl Into<Text>, kind: MapKind, mut entries: Vec<MapEntry>) -> Self {
        entries.sort_by_key(|e| e.value);
        entries.dedup_by_key(|e| e.value);
        ValueMap {
            name: name.into(),
            kind,
            entries,
            parts: Vec::new(),
            patterns: Vec::new(),
            format: Text::Borrowed(""),
        }
    }

    /// Adds values of groups of bits, each with the mask of its group. An example is a level of
    /// three bits among flags.
    #[must_use]
    pub(crate) fn with_parts(self, parts: Vec<(u64, MapEntry)>) -> Self {
        ValueMap { parts, ..self }
    }

    /// A pattern map. The patterns are tried in this order; `format` names the kind of expressions.
    #[must_use]
    pub fn of_patterns(
        name: impl Into<Text>,
        format: impl Into<Text>,
        patterns: Vec<Pattern>,
    ) -> Self {
        ValueMap {
            name: name.into(),
            kind: MapKind::Patterns,
            entries: Vec::new(),
            parts: Vec::new(),
            patterns,
            format: format.into(),
        }
    }

    /// The patterns of a pattern map, in the order in which they are tried.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// What kind of expressions the patterns are, as the manifest names it; else empty.
    #[must_use]
    pub fn format(&self) -> &str {
        &self.format
    }

    /// The map's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether values or bits have names.
    #[must_use]
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// The entries in order of value.
    #[must_use]
    pub fn entries(&self) -> &[MapEntry] {
        &self.entries
    }

    /// The name of exactly this value.
    #[must_use]
    pub fn get(&self, value: u64) -> Option<&str> {
        let index = self
            .entries
            .binary_search_by_key(&value, |entry| entry.value)
            .ok()?;
        Some(&self.entries.get(index)?.name)
    }

    /// The names of the bits that are set in `value`, in order of value, then the names of the
    /// values of groups of bits. Entries of value 0 are left out. [`ValueMap::unnamed`] has the
    /// other bits.
    pub fn bits(&self, value: u64) -> impl Iterator<Item = &str> {
        let bits = self.entries.iter();
        let bits = bits.filter(move |entry| entry.value != 0 && entry.value & value == entry.value);
        let groups = self.parts_of(value).map(|(_, entry)| entry);
        bits.chain(groups).map(|entry| &*entry.name)
    }

    fn parts_of(&self, value: u64) -> impl Iterator<Item = &(u64, MapEntry)> {
        self.parts
            .iter()
            .filter(move |(mask, entry)| value & mask == entry.value)
    }

    /// The bits of `value` that no entry names.
    #[must_use]
    pub fn unnamed(&self, value: u64) -> u64 {
        let mut rest = value;
        for entry in &self.entries {
            if entry.value & value == entry.value {
                rest &= !entry.value;
            }
        }
        for (mask, _) in self.parts_of(value) {
            rest &= !mask;
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: u64, name: &'static str) -> MapEntry {
        MapEntry {
            value,
            name: name.into(),
        }
    }

    #[test]
    fn get_returns_the_first_of_two_names() {
        let map = ValueMap::new(
            "m",
            MapKind::Values,
            vec![entry(2, "b"), entry(1, "a"), entry(2, "c")],
        );
        assert_eq!(map.get(2), Some("b"));
        assert_eq!(map.get(3), None);
    }

    #[test]
    fn bits_names_bits_and_unnamed_returns_the_others() {
        let map = ValueMap::new(
            "m",
            MapKind::Bits,
            vec![entry(0, "none"), entry(1, "a"), entry(6, "b")],
        );
        assert_eq!(map.bits(7).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(map.bits(5).collect::<Vec<_>>(), ["a"]);
        assert_eq!(map.unnamed(0x15), 0x14);
    }

    #[test]
    fn parts_name_values_of_several_bits() {
        let parts = vec![(0x30, entry(0x10, "low")), (0x30, entry(0x30, "high"))];
        let map = ValueMap::new("m", MapKind::Bits, vec![entry(1, "a")]).with_parts(parts);
        let names = |value| map.bits(value).collect::<Vec<_>>();
        assert_eq!(names(0x31), ["a", "high"]);
        assert_eq!((names(0x10), names(0x20)), (vec!["low"], vec![]));
        assert_eq!(
            [0x31, 0x20, 0x71].map(|value| map.unnamed(value)),
            [0, 0x20, 0x40]
        );
    }
}
