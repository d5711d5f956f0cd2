//! Search for texts in bytes: in UTF-8, in the ANSI code page (Windows-1252) and in UTF-16, at any
//! offset, in any case.

use std::collections::HashSet;

use super::trie::Trie;

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
        match self {
            Encoding::Narrow => bytes.iter().copied().map(char::from).collect(),
            Encoding::Wide => bytes.as_chunks().0.iter().copied().map(wide_char).collect(),
        }
    }

    /// The text: narrow bytes are UTF-8, or else Windows-1252.
    pub fn decoded(self, bytes: &[u8]) -> String {
        match self {
            Encoding::Narrow => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => bytes.iter().map(|byte| from_ansi(*byte)).collect(),
            },
            Encoding::Wide => {
                let pairs = bytes.as_chunks::<2>().0;
                let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
                String::from_utf16_lossy(&units)
            }
        }
    }
}

/// The character of a UTF-16 code unit; U+FFFD for a surrogate.
pub(super) fn wide_char(unit: [u8; 2]) -> char {
    char::from_u32(u16::from_le_bytes(unit).into()).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Encodes a character, if the encoding has it.
type Encode = fn(char) -> Option<Vec<u8>>;

/// The forms in which texts are searched.
const FORMS: [(Encoding, Encode); 3] = [
    (Encoding::Narrow, |c| {
        Some(c.encode_utf8(&mut [0; 4]).as_bytes().to_vec())
    }),
    (Encoding::Narrow, |c| ansi(c).map(|b| vec![b])),
    (Encoding::Wide, |c| {
        Some(
            c.encode_utf16(&mut [0; 2])
                .iter()
                .flat_map(|u| u.to_le_bytes())
                .collect(),
        )
    }),
];

/// An occurrence of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub text: usize,
    pub encoding: Encoding,
    pub start: usize,
    pub end: usize,
}

/// The beginning of a text at the end of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truncated {
    pub encoding: Encoding,
    pub start: usize,
}

/// Finds any of many texts. The time does not depend on their number.
#[derive(Clone, Debug, Default)]
pub(super) struct TextMatcher {
    texts: Vec<String>,
    /// The texts in each form.
    tries: [Trie; FORMS.len()],
    /// Finds texts only as whole words.
    only_words: bool,
}

impl TextMatcher {
    /// Finds these texts in all encodings and cases. Empty texts are left out.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut matcher = TextMatcher::default();
        let mut added = HashSet::new();
        for text in texts {
            if !text.is_empty() && added.insert(text.to_lowercase()) {
                matcher.add(text);
            }
        }
        matcher
    }

    /// Finds the texts only as whole words.
    pub fn only_words(mut self) -> Self {
        self.only_words = true;
        self
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn text(&self, index: usize) -> &str {
        self.texts.get(index).map_or("", String::as_str)
    }

    fn add(&mut self, text: &str) {
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        for (form, ((_, encode), trie)) in FORMS.iter().zip(&mut self.tries).enumerate() {
            // Both narrow forms of ASCII are the same.
            if form == 1 && text.is_ascii() {
                continue;
            }
            let mut characters: Vec<Vec<Vec<u8>>> = Vec::new();
            for c in text.chars() {
                characters.push(cases(c).into_iter().filter_map(encode).collect());
            }
            // The encoding may not have all characters.
            if !characters.iter().any(Vec::is_empty) {
                trie.add(number, &characters, text.is_ascii());
            }
        }
    }

    /// The first occurrence of a text from `from` on. If there are several at one offset, returns
    /// the longest.
    pub fn find(&self, bytes: &[u8], from: usize) -> Option<Found> {
        if self.is_empty() {
            return None;
        }
        (from..bytes.len()).find_map(|start| self.find_at(bytes, start))
    }

    /// All occurrences of texts, which may overlap.
    pub fn find_all(&self, bytes: &[u8]) -> Vec<Found> {
        let mut all = Vec::new();
        let mut from = 0;
        while let Some(found) = self.find(bytes, from) {
            from = found.start + 1;
            all.push(found);
        }
        all
    }

    /// The longest text at an offset.
    fn find_at(&self, bytes: &[u8], start: usize) -> Option<Found> {
        let mut longest: Option<Found> = None;
        for ((encoding, _), trie) in FORMS.iter().zip(&self.tries) {
            let end = trie.longest(bytes, start, |end| {
                !self.only_words || is_word(*encoding, bytes, start, end)
            });
            let Some(end) = end else { continue };
            if longest.is_none_or(|longest| longest.end <= end.offset) {
                longest = Some(Found {
                    text: end.text,
                    encoding: *encoding,
                    start,
                    end: end.offset,
                });
            }
        }
        longest
    }

    /// The beginning of a text at the end of the bytes that may continue in the next record, which
    /// begins with at most `beyond` bytes that could be text.
    pub fn find_truncated(&self, bytes: &[u8], beyond: usize) -> Option<Truncated> {
        let max_len = self.tries.iter().map(Trie::max_len).max().unwrap_or(0);
        for start in bytes.len().saturating_sub(max_len)..bytes.len() {
            let rest = bytes.get(start..).unwrap_or_default();
            for ((encoding, _), trie) in FORMS.iter().zip(&self.tries) {
                if trie.begins(rest, beyond) {
                    return Some(Truncated {
                        encoding: *encoding,
                        start,
                    });
                }
            }
        }
        None
    }
}

/// Whether no letter or digit precedes or follows.
fn is_word(encoding: Encoding, bytes: &[u8], start: usize, end: usize) -> bool {
    if let Some(before) = start.checked_sub(encoding.step())
        && is_alphanumeric_at(encoding, bytes, before)
    {
        return false;
    }
    !is_alphanumeric_at(encoding, bytes, end)
}

/// Whether an ASCII letter or digit is at an offset.
fn is_alphanumeric_at(encoding: Encoding, bytes: &[u8], offset: usize) -> bool {
    match (encoding, bytes.get(offset..)) {
        (Encoding::Narrow, Some([byte, ..])) => byte.is_ascii_alphanumeric(),
        (Encoding::Wide, Some([low, 0, ..])) => low.is_ascii_alphanumeric(),
        _ => false,
    }
}

/// Letters that are the other case of a further letter: the letter, and the further one.
const FURTHER: [(char, char); 16] = [
    ('k', '\u{212a}'),
    ('s', '\u{17f}'),
    ('i', '\u{131}'),
    ('å', '\u{212b}'),
    ('ß', '\u{1e9e}'),
    ('β', '\u{3d0}'),
    ('ε', '\u{3f5}'),
    ('θ', '\u{3d1}'),
    ('ι', '\u{1fbe}'),
    ('κ', '\u{3f0}'),
    ('μ', '\u{b5}'),
    ('π', '\u{3d6}'),
    ('ρ', '\u{3f1}'),
    ('σ', '\u{3c2}'),
    ('φ', '\u{3d5}'),
    ('ω', '\u{2126}'),
];

/// A character in each of its cases.
fn cases(c: char) -> Vec<char> {
    let mut all = vec![c];
    let mut index = 0;
    while let Some(&c) = all.get(index) {
        add_case(&mut all, c.to_lowercase());
        add_case(&mut all, c.to_uppercase());
        for (letter, further) in FURTHER {
            if letter == c {
                add_case(&mut all, std::iter::once(further));
            }
        }
        index += 1;
    }
    all
}

/// Adds a case of a character that is a single, new character.
fn add_case(all: &mut Vec<char>, mut case: impl Iterator<Item = char>) {
    if let Some(c) = case.next()
        && case.next().is_none()
        && !all.contains(&c)
    {
        all.push(c);
    }
}

/// The characters of Windows-1252 from 0x80 on.
const HIGH: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// A character in Windows-1252.
fn ansi(c: char) -> Option<u8> {
    let code = match u32::from(c) {
        code @ (0..=0x7f | 0xa0..=0xff) => code as usize,
        _ => 0x80 + HIGH.iter().position(|high| *high == c)?,
    };
    u8::try_from(code).ok()
}

/// The character of a byte in Windows-1252.
fn from_ansi(byte: u8) -> char {
    let index = usize::from(byte).checked_sub(0x80);
    let high = index.and_then(|index| HIGH.get(index));
    high.copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(texts: &[&str]) -> TextMatcher {
        TextMatcher::new(texts.iter().copied())
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn find_knows_every_encoding_and_case() {
        let n = matcher(&["Müller", "bob"]);
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
        let n = matcher(&["ann", "anna"]);
        assert_eq!(n.find(b"xannax", 0).map(|f| (f.start, f.end)), Some((1, 5)));
        let n = matcher(&["ann"]).only_words();
        assert_eq!(n.find(b"anna.ann\\", 0).map(|f| f.start), Some(5));
        assert_eq!(n.find(&wide("anna.ann"), 0).map(|f| f.start), Some(10));
        assert_eq!(n.find(b"xann", 0), None);
    }

    #[test]
    fn find_truncated_returns_the_beginning_of_a_text() {
        let n = matcher(&["secret"]);
        let start = |bytes: &[u8]| n.find_truncated(bytes, 3).map(|text| text.start);
        assert_eq!(start(b"..secre"), Some(2));
        assert_eq!(start(b"..se"), None);
        assert_eq!(start(b"..secret"), None);
        let bytes = wide("..secre");
        assert_eq!(start(&bytes[..bytes.len() - 1]), Some(4));
        let n = matcher(&["secret", "secrets", "s3"]);
        let start = |bytes: &[u8]| n.find_truncated(bytes, 3).map(|text| text.start);
        assert_eq!(
            (start(b"..secret"), start(b"..s"), start(b"..se")),
            (Some(2), Some(2), None)
        );
    }

    #[test]
    fn find_knows_letters_of_more_than_two_forms() {
        for (text, other) in [
            (
                "\u{39d}\u{3af}\u{3ba}\u{3bf}\u{3c2}",
                "\u{39d}\u{38a}\u{39a}\u{39f}\u{3a3}",
            ),
            ("\u{3bf}\u{3c3}\u{3b1}", "\u{3bf}\u{3c2}\u{3b1}"),
            ("stra\u{df}e", "STRA\u{1e9e}E"),
            ("mark", "mar\u{212a}"),
            ("\u{131}nan", "INAN"),
        ] {
            for (text, other) in [(text, other), (other, text)] {
                let n = matcher(&["other", text]);
                for bytes in [other.as_bytes().to_vec(), wide(other)] {
                    let found = n.find(&bytes, 0).map(|f| (f.text, f.start, f.end));
                    assert_eq!(found, Some((1, 0, bytes.len())), "{text} {other}");
                }
            }
        }
    }

    #[test]
    fn texts_are_added_once() {
        let n = matcher(&["Ann", "ANN", "", "bob"]);
        assert_eq!((n.len(), n.text(0), n.text(1)), (2, "Ann", "bob"));
        assert!(!n.is_empty() && matcher(&[""]).is_empty());
    }

    /// Comparing every text at every byte would take minutes.
    #[test]
    fn find_is_fast_with_many_texts() {
        let texts: Vec<_> = (0..20_000)
            .map(|i| format!("secret number {i:05}"))
            .collect();
        let n = TextMatcher::new(texts.iter().map(String::as_str));
        let bytes = "a secret number 1234x ".repeat(10_000) + "Secret Number 19999 secret number";
        let found = n.find(bytes.as_bytes(), 0).unwrap();
        assert_eq!((found.text, found.end), (19_999, bytes.len() - 14));
        assert_eq!(n.find(bytes.as_bytes(), found.end), None);
        assert_eq!(
            n.find_truncated(bytes.as_bytes(), 9).map(|text| text.start),
            Some(bytes.len() - 13)
        );
    }

    #[test]
    fn decoded_reads_both_narrow_encodings() {
        for bytes in ["\u{160}koda".as_bytes(), b"\x8akoda"] {
            assert_eq!(Encoding::Narrow.decoded(bytes), "\u{160}koda");
        }
        assert_eq!(Encoding::Wide.decoded(&wide("\u{1f600}x")), "\u{1f600}x");
    }
}
