//! Patterns of private data: owners of home directories, and SIDs of accounts.

use std::ops::Range;

use super::mask::Mask;
use super::matcher::{Encoding, Found, wide_char};

/// Directories that contain homes.
const HOMES: [&str; 6] = [
    "\\users\\",
    "/users/",
    "/home/",
    "\\documents and settings\\",
    "\\\\users\\\\",
    "\\\\documents and settings\\\\",
];

/// Homes that do not belong to a person, and a file next to them.
const SHARED_HOMES: [&str; 10] = [
    "public",
    "default",
    "default user",
    "defaultuser0",
    "all users",
    "shared",
    "localservice",
    "networkservice",
    "defaultapppool",
    "desktop.ini",
];

/// Characters of the longest name of a home.
const MAX_NAME: usize = 64;

/// A home directory.
pub(super) struct Home {
    /// The location of its name.
    pub owner: Found,
    /// Its name, which is the name of its owner.
    pub name: String,
}

/// The character at an offset; U+FFFD if it is a surrogate.
fn char_at(bytes: &[u8], offset: usize, encoding: Encoding) -> Option<char> {
    match encoding {
        Encoding::Narrow => Some(char::from(*bytes.get(offset)?)),
        Encoding::Wide => Some(wide_char(*bytes.get(offset..)?.first_chunk()?)),
    }
}

/// Whether an ASCII text, given in lower case, is at an offset, in any case.
fn is_at(bytes: &[u8], offset: usize, encoding: Encoding, text: &str) -> bool {
    text.chars().enumerate().all(|(index, expected)| {
        match char_at(bytes, offset + index * encoding.step(), encoding) {
            Some(c) => c.to_ascii_lowercase() == expected,
            None => false,
        }
    })
}

/// The next home directory from an offset on.
pub(super) fn home(bytes: &[u8], from: usize) -> Option<Home> {
    for (offset, byte) in bytes.iter().enumerate().skip(from) {
        if !matches!(byte, b'\\' | b'/') {
            continue;
        }
        for encoding in [Encoding::Narrow, Encoding::Wide] {
            let Some(directory) = HOMES.iter().find(|h| is_at(bytes, offset, encoding, h)) else {
                continue;
            };
            let start = offset + directory.len() * encoding.step();
            let end = end_of_name(bytes, start, encoding);
            let name = encoding.decoded(bytes.get(start..end).unwrap_or_default());
            if !name.is_empty() && !SHARED_HOMES.contains(&name.to_lowercase().as_str()) {
                let owner = Found {
                    text: 0,
                    encoding,
                    start,
                    end,
                };
                return Some(Home { owner, name });
            }
        }
    }
    None
}

/// The end of the name of a home that begins at `start`.
fn end_of_name(bytes: &[u8], start: usize, encoding: Encoding) -> usize {
    let step = encoding.step();
    let mut end = start;
    let mut len = 0;
    // The offset of the first `&` after a blank.
    let mut command = None;
    while end - start < MAX_NAME * 4
        && let Some(c) = char_at(bytes, end, encoding)
    {
        // In UTF-8, such bytes follow the first byte of a character.
        let follows = encoding == Encoding::Narrow && ('\u{80}'..'\u{c0}').contains(&c);
        if len == MAX_NAME && !follows {
            break;
        }
        // Eight-bit characters from 0x80 on may belong to letters of UTF-8 or Windows-1252.
        let is_control = c.is_control() && (encoding == Encoding::Wide || c.is_ascii());
        let is_operator = is_at(bytes, end, encoding, "&&");
        if is_control || is_operator || "\\/:*?\"<>|;,".contains(c) {
            break;
        }
        if c == '&' && is_after_blank(bytes, start, end, encoding) {
            command.get_or_insert(end);
        }
        len += usize::from(!follows);
        end += step;
    }
    // A name may contain `&`. But after the last name of a path, `&` may also begin a command.
    if !matches!(char_at(bytes, end, encoding), Some('\\' | '/')) {
        end = command.unwrap_or(end);
    }
    while is_after_blank(bytes, start, end, encoding) {
        end -= step;
    }
    end
}

/// Whether a blank precedes an offset in a name that begins at `start`.
fn is_after_blank(bytes: &[u8], start: usize, offset: usize, encoding: Encoding) -> bool {
    offset > start && char_at(bytes, offset - encoding.step(), encoding) == Some(' ')
}

/// Replaces the parts of a SID that identify the machine, the domain and the account; parts that
/// every machine has stay. `sid` is the SID as stored.
pub(super) fn sid(mask: &Mask, sid: &mut [u8]) -> bool {
    let &mut [1, count, 0, 0, 0, 0, 0, authority, ref mut rest @ ..] = sid else {
        return false;
    };
    let mut parts: Vec<u32> = Vec::new();
    for word in rest.chunks_exact(4).take(count.into()) {
        parts.push(word.first_chunk().map_or(0, |w| u32::from_le_bytes(*w)));
    }
    let before = parts.clone();
    for (index, part) in parts.iter_mut().enumerate() {
        *part = replacement(mask, authority.into(), &before, index);
    }
    for (word, part) in rest.chunks_exact_mut(4).zip(&parts) {
        word.copy_from_slice(&part.to_le_bytes());
    }
    parts != before
}

/// The replacement of a sub-authority.
fn replacement(mask: &Mask, authority: u64, parts: &[u32], index: usize) -> u32 {
    let part = parts.get(index).copied().unwrap_or(0);
    match (authority, parts.first()) {
        // S-1-5-21-machine-machine-machine-account; accounts below 1000 are the same everywhere.
        (5, Some(21)) if (1..=3).contains(&index) => mask.same_digits(part),
        (5, Some(21)) if index > 3 && part >= 1000 => mask.same_digits(part),
        // S-1-12-1-account, of a cloud directory.
        (12, Some(1)) if index >= 1 => mask.same_digits(part),
        _ => part,
    }
}

/// Replaces the next SID in text, from an offset on. Returns its range.
pub(super) fn sid_text(mask: &Mask, bytes: &mut [u8], from: usize) -> Option<Range<usize>> {
    for offset in from..bytes.len() {
        if matches!(bytes.get(offset), Some(b'S' | b's'))
            && let Some(sid) = SidText::read(bytes, offset)
        {
            sid.replace(mask, bytes);
            return Some(offset..sid.end);
        }
    }
    None
}

/// A SID in text.
struct SidText {
    encoding: Encoding,
    authority: u64,
    /// The sub-authorities; the first is part of the prefix.
    parts: Vec<u32>,
    /// The digits of the other sub-authorities.
    digits: Vec<Digits>,
    /// The offset of its end.
    end: usize,
}

/// The digits of a number in text.
struct Digits {
    start: usize,
    len: usize,
}

impl SidText {
    /// The beginnings of SIDs that identify an account, with their authority and first
    /// sub-authority.
    const PREFIXES: [(&str, u64, u32); 2] = [("s-1-5-21-", 5, 21), ("s-1-12-1-", 12, 1)];

    fn read(bytes: &[u8], offset: usize) -> Option<Self> {
        for encoding in [Encoding::Narrow, Encoding::Wide] {
            for (prefix, authority, first) in Self::PREFIXES {
                if !is_at(bytes, offset, encoding, prefix) {
                    continue;
                }
                let mut sid = SidText {
                    encoding,
                    authority,
                    parts: vec![first],
                    digits: Vec::new(),
                    end: offset + prefix.len() * encoding.step(),
                };
                sid.read_parts(bytes);
                if !sid.digits.is_empty() {
                    return Some(sid);
                }
            }
        }
        None
    }

    /// Reads the sub-authorities after the prefix.
    fn read_parts(&mut self, bytes: &[u8]) {
        while self.parts.len() < 8 {
            let start = self.end;
            let mut digits = String::new();
            while let Some(c @ '0'..='9') = char_at(bytes, self.end, self.encoding)
                && digits.len() < 10
            {
                digits.push(c);
                self.end += self.encoding.step();
            }
            let Ok(part) = digits.parse::<u32>() else {
                return;
            };
            self.parts.push(part);
            self.digits.push(Digits {
                start,
                len: digits.len(),
            });
            if char_at(bytes, self.end, self.encoding) != Some('-') {
                return;
            }
            self.end += self.encoding.step();
        }
    }

    /// Writes the replacements of the sub-authorities over their digits.
    fn replace(&self, mask: &Mask, bytes: &mut [u8]) {
        for (index, digits) in self.digits.iter().enumerate() {
            let part = replacement(mask, self.authority, &self.parts, index + 1);
            let text = format!("{part:0len$}", len = digits.len);
            for (position, digit) in text.bytes().take(digits.len).enumerate() {
                if let Some(byte) = bytes.get_mut(digits.start + position * self.encoding.step()) {
                    *byte = digit;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn home_finds_owners() {
        for (text, owner) in [
            ("C:\\Users\\Jane Doe\\x.dll", Some("Jane Doe")),
            ("\\Device\\HarddiskVolume2\\USERS\\bob", Some("bob")),
            ("/home/ann/.bashrc", Some("ann")),
            ("C:\\Documents and Settings\\bob\\x", Some("bob")),
            (
                "{\"p\":\"C:\\\\Documents and Settings\\\\wanda\\\\x\"}",
                Some("wanda"),
            ),
            ("cd C:\\Users\\robert && run; robert", Some("robert")),
            ("C:\\Users\\R & D\\x", Some("R & D")),
            ("cd C:\\Users\\bob & run", Some("bob")),
            ("C:\\Users\\R&D", Some("R&D")),
            (
                "C:\\Users\\\u{141}ukasz \u{160}koda\\x",
                Some("\u{141}ukasz \u{160}koda"),
            ),
            ("C:\\Users\\Public\\x", None),
            ("C:\\Users\\desktop.ini", None),
            ("C:\\Windows\\x", None),
        ] {
            let found = |bytes: &[u8]| home(bytes, 0).map(|home| home.name);
            assert_eq!(found(text.as_bytes()).as_deref(), owner, "{text}");
            assert_eq!(
                found(&[&[7], wide(text).as_slice()].concat()).as_deref(),
                owner,
                "{text}"
            );
        }
        assert_eq!(
            home(b"C:\\Users\\\x8akoda\\", 0).unwrap().name,
            "\u{160}koda",
            "Windows-1252"
        );
        let long = [b"C:\\Users\\".as_slice(), "\u{e9}".repeat(99).as_bytes()].concat();
        assert_eq!(home(&long, 0).unwrap().name, "\u{e9}".repeat(MAX_NAME));
        let twice = b"C:\\Users\\Public\\x C:\\Users\\bob\\";
        assert_eq!(home(twice, 0).unwrap().name, "bob");
    }

    #[test]
    fn sid_and_sid_text_agree() {
        let mask = Mask::new(b"salt");
        let parts = [21u32, 1_004_336_348, 1_177_238_915, 682_003_330, 1_001];
        let mut bytes = vec![1, 5, 0, 0, 0, 0, 0, 5];
        parts.iter().for_each(|p| bytes.extend(p.to_le_bytes()));
        let text = "S-1-5-21-1004336348-1177238915-682003330-1001";
        assert!(sid(&mask, &mut bytes));
        let after: Vec<_> = bytes[8..]
            .chunks(4)
            .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
            .collect();
        assert_eq!(after[0], 21);
        assert!(after.iter().skip(1).zip(&parts[1..]).all(|(a, b)| a != b));
        let expected: Vec<_> = after.iter().map(u32::to_string).collect();
        for mut written in [text.as_bytes().to_vec(), wide(text)] {
            let len = written.len();
            assert_eq!(sid_text(&mask, &mut written, 0), Some(0..len));
            written.retain(|b| *b != 0);
            let written = String::from_utf8(written).unwrap();
            assert_eq!(written, format!("S-1-5-{}", expected.join("-")));
        }
        // SIDs of the system stay.
        let mut system = vec![1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert!(!sid(&mask, &mut system));
        assert_eq!(
            sid_text(&mask, &mut b"S-1-5-18 S-1-5-32-544".to_vec(), 0),
            None
        );
    }
}
