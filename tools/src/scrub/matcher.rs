//! Search for texts in bytes: in UTF-8, in the ANSI code page (Windows-1252) and in UTF-16, at any
//! offset, in any case.

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, or the ANSI code page.
    Narrow,
    /// UTF-16, little-endian.
    Wide,
}

impl Encoding {
    /// Bytes of a unit.
    pub fn step(self) -> usize {
        match self {
            Encoding::Narrow => 1,
            Encoding::Wide => 2,
        }
    }

    /// One character for each unit; U+FFFD for a surrogate.
    pub fn characters(self, bytes: &[u8]) -> Vec<char> {
        let wide = |unit: &[u8; 2]| char::from_u32(u16::from_le_bytes(*unit).into());
        match self {
            Encoding::Narrow => bytes.iter().map(|b| char::from(*b)).collect(),
            Encoding::Wide => {
                let units = bytes.as_chunks().0.iter();
                units.map(|unit| wide(unit).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
            }
        }
    }
}

/// Encodes a character, if the encoding has it.
type Encode = fn(char) -> Option<Vec<u8>>;

/// A text in one encoding: for each character its variants.
#[derive(Clone, Debug)]
struct Pattern {
    /// Index of the text.
    pub text: usize,
    pub encoding: Encoding,
    /// Only as a whole word.
    pub word: bool,
    characters: Vec<Vec<Vec<u8>>>,
    min_len: usize,
    plain: bool,
}

/// An occurrence of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub text: usize,
    pub encoding: Encoding,
    pub start: usize,
    pub end: usize,
}

/// Finds any of many texts.
#[derive(Clone, Debug, Default)]
pub(super) struct TextMatcher {
    texts: Vec<String>,
    patterns: Vec<Pattern>,
    /// TextMatcher by their first byte.
    by_first_byte: Vec<Vec<usize>>,
    max_len: usize,
}

impl TextMatcher {
    pub fn new() -> Self {
        TextMatcher { by_first_byte: vec![Vec::new(); 256], ..TextMatcher::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn text(&self, index: usize) -> &str {
        self.texts.get(index).map_or("", String::as_str)
    }

    /// Adds a text in all encodings, unless it is empty or known.
    pub fn add(&mut self, text: &str, word: bool) {
        let known = self.texts.iter().any(|t| t.to_lowercase() == text.to_lowercase());
        if text.is_empty() || known {
            return;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        let forms: [(Encoding, Encode); 3] = [
            (Encoding::Narrow, |c| Some(c.encode_utf8(&mut [0; 4]).as_bytes().to_vec())),
            (Encoding::Narrow, |c| ansi(c).map(|b| vec![b])),
            (Encoding::Wide, |c| {
                Some(c.encode_utf16(&mut [0; 2]).iter().flat_map(|u| u.to_le_bytes()).collect())
            }),
        ];
        for (form, (encoding, encode)) in forms.into_iter().enumerate() {
            if form == 1 && text.is_ascii() {
                continue;
            }
            let characters: Vec<Vec<Vec<u8>>> =
                text.chars().map(|c| cases(c).into_iter().filter_map(encode).collect()).collect();
            // The encoding does not have all characters.
            if characters.iter().any(Vec::is_empty) {
                continue;
            }
            let size = |f: fn(&Vec<Vec<u8>>) -> usize| characters.iter().map(f).sum::<usize>();
            let min_len = size(|c| c.iter().map(Vec::len).min().unwrap_or(0));
            self.max_len = self.max_len.max(size(|c| c.iter().map(Vec::len).max().unwrap_or(0)));
            let index = self.patterns.len();
            for start in characters.first().into_iter().flatten().filter_map(|c| c.first()) {
                if let Some(list) = self.by_first_byte.get_mut(usize::from(*start))
                    && !list.contains(&index)
                {
                    list.push(index);
                }
            }
            let plain = text.is_ascii();
            self.patterns.push(Pattern {
                text: number,
                encoding,
                word,
                characters,
                min_len,
                plain,
            });
        }
    }

    /// The first occurrence of a text from `from` on; of several at one offset, the longest.
    pub fn find(&self, bytes: &[u8], from: usize) -> Option<Found> {
        if self.patterns.is_empty() {
            return None;
        }
        for (start, byte) in bytes.iter().enumerate().skip(from) {
            let Some(list) = self.by_first_byte.get(usize::from(*byte)) else { continue };
            let ends = list.iter().filter_map(|index| {
                let pattern = self.patterns.get(*index)?;
                let end = longest(&pattern.characters, bytes, start)?;
                (!pattern.word || pattern.is_word(bytes, start, end)).then_some((end, pattern))
            });
            if let Some((end, pattern)) = ends.max_by_key(|(end, _)| *end) {
                return Some(Found { text: pattern.text, encoding: pattern.encoding, start, end });
            }
        }
        None
    }

    /// A text that begins at the end of the bytes and may continue in the next record, which begins
    /// with at most `beyond` bytes that could be text.
    pub fn find_truncated(&self, bytes: &[u8], beyond: usize) -> Option<Found> {
        let from = bytes.len().saturating_sub(self.max_len);
        for start in from..bytes.len() {
            for pattern in &self.patterns {
                let have = bytes.len() - start;
                let near = have.saturating_add(beyond) >= pattern.min_len || !pattern.plain;
                if near && begins(&pattern.characters, bytes, start) {
                    let (text, encoding) = (pattern.text, pattern.encoding);
                    return Some(Found { text, encoding, start, end: bytes.len() });
                }
            }
        }
        None
    }
}

impl Pattern {
    /// Whether no letter or digit precedes or follows.
    fn is_word(&self, bytes: &[u8], start: usize, end: usize) -> bool {
        let letter = |at: Option<usize>| match self.encoding {
            Encoding::Narrow => {
                at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric)
            }
            Encoding::Wide => at
                .and_then(|at| bytes.get(at..at + 2))
                .is_some_and(|unit| matches!(unit, [low, 0] if low.is_ascii_alphanumeric())),
        };
        let before = start.checked_sub(self.encoding.step());
        !letter(before) && !letter(Some(end))
    }
}

/// The end of the longest variant of the characters at `at`.
fn longest(characters: &[Vec<Vec<u8>>], bytes: &[u8], at: usize) -> Option<usize> {
    let Some((first, rest)) = characters.split_first() else { return Some(at) };
    let ends = first.iter().filter_map(|way| {
        let end = at + way.len();
        (bytes.get(at..end)? == way.as_slice()).then(|| longest(rest, bytes, end))?
    });
    ends.max()
}

/// Whether the bytes end within the characters.
fn begins(characters: &[Vec<Vec<u8>>], bytes: &[u8], at: usize) -> bool {
    let left = bytes.get(at..).unwrap_or_default();
    if left.is_empty() {
        return !characters.is_empty();
    }
    let Some((first, rest)) = characters.split_first() else { return false };
    first.iter().any(|way| match way.len() > left.len() {
        true => way.starts_with(left),
        false => left.starts_with(way) && begins(rest, bytes, at + way.len()),
    })
}

/// A character in each of its cases.
fn cases(c: char) -> Vec<char> {
    let one = |mut many: Box<dyn Iterator<Item = char>>| match (many.next(), many.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    };
    let mut all = vec![c];
    let mut add = |other: Option<char>| {
        if let Some(other) = other.filter(|o| !all.contains(o)) {
            all.push(other);
        }
    };
    add(one(Box::new(c.to_lowercase())));
    add(one(Box::new(c.to_uppercase())));
    // The two signs whose lower case is a letter of ASCII, the other way round.
    add(match c.to_ascii_lowercase() {
        'k' => Some('\u{212a}'),
        's' => Some('\u{17f}'),
        _ => None,
    });
    all
}

/// A character in Windows-1252.
fn ansi(c: char) -> Option<u8> {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match u32::from(c) {
        code @ (0..=0x7f | 0xa0..=0xff) => u8::try_from(code).ok(),
        _ => HIGH.iter().position(|h| *h == c).and_then(|at| u8::try_from(0x80 + at).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(texts: &[&str], word: bool) -> TextMatcher {
        let mut matcher = TextMatcher::new();
        texts.iter().for_each(|t| matcher.add(t, word));
        matcher
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn find_knows_every_encoding_and_case() {
        let n = matcher(&["Müller", "bob"], false);
        for bytes in [
            "xMÜLLERx".as_bytes().to_vec(),
            b"xm\xfcllerx".to_vec(),
            b"xM\xdcLLERx".to_vec(),
            [b"x".to_vec(), wide("mÜller")].concat(),
        ] {
            let found = n.find(&bytes, 0).unwrap();
            assert_eq!((found.text, found.start), (0, 1), "{bytes:?}");
        }
        assert_eq!(n.find(b"BoB", 0).map(|f| f.text), Some(1));
        assert_eq!(n.find(b"mueller", 0), None);
        assert_eq!(n.find(&wide("bo"), 0), None);
    }

    #[test]
    fn find_returns_the_longest_and_whole_words() {
        let n = matcher(&["ann", "anna"], false);
        assert_eq!(n.find(b"xannax", 0).map(|f| (f.start, f.end)), Some((1, 5)));
        let n = matcher(&["ann"], true);
        assert_eq!(n.find(b"anna.ann\\", 0).map(|f| f.start), Some(5));
        assert_eq!(n.find(&wide("anna.ann"), 0).map(|f| f.start), Some(10));
        assert_eq!(n.find(b"xann", 0), None);
    }

    #[test]
    fn find_truncated_returns_the_beginning_of_a_text() {
        let n = matcher(&["secret"], false);
        assert_eq!(n.find_truncated(b"..secre", 3).map(|f| f.start), Some(2));
        assert_eq!(n.find_truncated(b"..se", 3), None);
        assert_eq!(n.find_truncated(b"..secret", 3), None);
        let bytes = wide("..secre");
        assert_eq!(n.find_truncated(&bytes[..bytes.len() - 1], 3).map(|f| f.start), Some(4));
    }
}
