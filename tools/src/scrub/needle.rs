//! Texts searched among bytes: in UTF-8, in the ANSI code page (Windows-1252) and in UTF-16, at any
//! offset, in any case.

/// How a text lies among bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// UTF-8, or the ANSI code page.
    Narrow,
    /// UTF-16, little-endian.
    Wide,
}

/// Writes a character, if it can be written so.
type Encode = fn(char) -> Option<Vec<u8>>;

/// A text as bytes: for each of its characters the ways to write it.
#[derive(Clone, Debug)]
pub(super) struct Needle {
    /// Which text.
    pub text: usize,
    pub coding: Coding,
    /// Only as a whole word.
    pub word: bool,
    characters: Vec<Vec<Vec<u8>>>,
    least: usize,
    plain: bool,
}

/// A place at which a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub text: usize,
    pub coding: Coding,
    pub start: usize,
    pub end: usize,
}

/// Many texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Needles {
    texts: Vec<String>,
    needles: Vec<Needle>,
    /// Needles by their first byte.
    first: Vec<Vec<usize>>,
    longest: usize,
}

impl Needles {
    pub fn new() -> Self {
        Needles { first: vec![Vec::new(); 256], ..Needles::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn text(&self, index: usize) -> &str {
        self.texts.get(index).map_or("", String::as_str)
    }

    /// Adds a text, in all its forms; none that is there already or empty.
    pub fn add(&mut self, text: &str, word: bool) {
        let known = self.texts.iter().any(|t| t.to_lowercase() == text.to_lowercase());
        if text.is_empty() || known {
            return;
        }
        let number = self.texts.len();
        self.texts.push(text.to_owned());
        let forms: [(Coding, Encode); 3] = [
            (Coding::Narrow, |c| Some(c.encode_utf8(&mut [0; 4]).as_bytes().to_vec())),
            (Coding::Narrow, |c| ansi(c).map(|b| vec![b])),
            (Coding::Wide, |c| {
                Some(c.encode_utf16(&mut [0; 2]).iter().flat_map(|u| u.to_le_bytes()).collect())
            }),
        ];
        for (form, (coding, encode)) in forms.into_iter().enumerate() {
            if form == 1 && text.is_ascii() {
                continue;
            }
            let characters: Vec<Vec<Vec<u8>>> =
                text.chars().map(|c| cases(c).into_iter().filter_map(encode).collect()).collect();
            // Not all of it can be written in this form.
            if characters.iter().any(Vec::is_empty) {
                continue;
            }
            let size = |f: fn(&Vec<Vec<u8>>) -> usize| characters.iter().map(f).sum::<usize>();
            let least = size(|c| c.iter().map(Vec::len).min().unwrap_or(0));
            self.longest = self.longest.max(size(|c| c.iter().map(Vec::len).max().unwrap_or(0)));
            let place = self.needles.len();
            for start in characters.first().into_iter().flatten().filter_map(|c| c.first()) {
                if let Some(list) = self.first.get_mut(usize::from(*start))
                    && !list.contains(&place)
                {
                    list.push(place);
                }
            }
            let plain = text.is_ascii();
            self.needles.push(Needle { text: number, coding, word, characters, least, plain });
        }
    }

    /// The first place from `from` on at which a text stands; of several there, the longest.
    pub fn find(&self, bytes: &[u8], from: usize) -> Option<Found> {
        if self.needles.is_empty() {
            return None;
        }
        for (start, byte) in bytes.iter().enumerate().skip(from) {
            let Some(list) = self.first.get(usize::from(*byte)) else { continue };
            let ends = list.iter().filter_map(|place| {
                let needle = self.needles.get(*place)?;
                let end = longest(&needle.characters, bytes, start)?;
                (!needle.word || needle.is_word(bytes, start, end)).then_some((end, needle))
            });
            if let Some((end, needle)) = ends.max_by_key(|(end, _)| *end) {
                return Some(Found { text: needle.text, coding: needle.coding, start, end });
            }
        }
        None
    }

    /// A text that begins at the end of the bytes and may go on in what follows: the next record,
    /// which begins with at most `beyond` bytes that could be text.
    pub fn begun(&self, bytes: &[u8], beyond: usize) -> Option<Found> {
        let from = bytes.len().saturating_sub(self.longest);
        for start in from..bytes.len() {
            for needle in &self.needles {
                let have = bytes.len() - start;
                let near = have.saturating_add(beyond) >= needle.least || !needle.plain;
                if near && begins(&needle.characters, bytes, start) {
                    let (text, coding) = (needle.text, needle.coding);
                    return Some(Found { text, coding, start, end: bytes.len() });
                }
            }
        }
        None
    }
}

impl Needle {
    /// Whether neither side goes on with a letter or a digit.
    fn is_word(&self, bytes: &[u8], start: usize, end: usize) -> bool {
        let letter = |at: Option<usize>| match self.coding {
            Coding::Narrow => {
                at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric)
            }
            Coding::Wide => at
                .and_then(|at| bytes.get(at..at + 2))
                .is_some_and(|unit| matches!(unit, [low, 0] if low.is_ascii_alphanumeric())),
        };
        let before = start.checked_sub(if self.coding == Coding::Wide { 2 } else { 1 });
        !letter(before) && !letter(Some(end))
    }
}

/// Where the longest way to write the characters from `at` on ends.
fn longest(characters: &[Vec<Vec<u8>>], bytes: &[u8], at: usize) -> Option<usize> {
    let Some((first, rest)) = characters.split_first() else { return Some(at) };
    let ends = first.iter().filter_map(|way| {
        let end = at + way.len();
        (bytes.get(at..end)? == way.as_slice()).then(|| longest(rest, bytes, end))?
    });
    ends.max()
}

/// Whether the bytes end while the characters are being written.
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

    fn needles(texts: &[&str], word: bool) -> Needles {
        let mut needles = Needles::new();
        texts.iter().for_each(|t| needles.add(t, word));
        needles
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn texts_in_every_form() {
        let n = needles(&["Müller", "bob"], false);
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
    fn the_longest_of_several_and_whole_words() {
        let n = needles(&["ann", "anna"], false);
        assert_eq!(n.find(b"xannax", 0).map(|f| (f.start, f.end)), Some((1, 5)));
        let n = needles(&["ann"], true);
        assert_eq!(n.find(b"anna.ann\\", 0).map(|f| f.start), Some(5));
        assert_eq!(n.find(&wide("anna.ann"), 0).map(|f| f.start), Some(10));
        assert_eq!(n.find(b"xann", 0), None);
    }

    #[test]
    fn what_begins_at_the_end() {
        let n = needles(&["secret"], false);
        assert_eq!(n.begun(b"..secre", 3).map(|f| f.start), Some(2));
        assert_eq!(n.begun(b"..se", 3), None);
        assert_eq!(n.begun(b"..secret", 3), None);
        let bytes = wide("..secre");
        assert_eq!(n.begun(&bytes[..bytes.len() - 1], 3).map(|f| f.start), Some(4));
    }
}
