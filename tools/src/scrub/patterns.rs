//! What is private by its form: the owner of a home directory, and the SID of an account.

use super::mask::Mask;
use super::needle::Coding;

/// Directories below which homes stand.
const HOMES: [&str; 5] =
    ["\\users\\", "/users/", "/home/", "\\documents and settings\\", "\\\\users\\\\"];

/// Homes that are nobody's.
const NOBODY: [&str; 9] = [
    "public",
    "default",
    "default user",
    "defaultuser0",
    "all users",
    "shared",
    "localservice",
    "networkservice",
    "defaultapppool",
];

/// Longest name of a home, in characters.
const LONGEST_NAME: usize = 64;

/// A place among bytes, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub coding: Coding,
    pub start: usize,
    pub end: usize,
    pub name: String,
}

/// The character at a place, if it is one of ASCII; others are told as U+FFFD.
fn at(bytes: &[u8], place: usize, coding: Coding) -> Option<char> {
    match coding {
        Coding::Narrow => bytes.get(place).map(|b| char::from(*b)),
        Coding::Wide => {
            let unit = u16::from_le_bytes(*bytes.get(place..)?.first_chunk()?);
            Some(char::from_u32(unit.into()).unwrap_or('\u{fffd}'))
        }
    }
}

fn step(coding: Coding) -> usize {
    if coding == Coding::Wide { 2 } else { 1 }
}

/// Whether a text of ASCII in lower case stands at a place, in any case.
fn stands(bytes: &[u8], place: usize, coding: Coding, text: &str) -> bool {
    text.chars().enumerate().all(|(number, c)| {
        at(bytes, place + number * step(coding), coding)
            .is_some_and(|b| b.to_ascii_lowercase() == c)
    })
}

/// The owner of the next home directory from a place on.
pub(super) fn home(bytes: &[u8], from: usize) -> Option<Named> {
    for (place, byte) in bytes.iter().enumerate().skip(from) {
        if !matches!(byte, b'\\' | b'/') {
            continue;
        }
        for coding in [Coding::Narrow, Coding::Wide] {
            let Some(directory) = HOMES.iter().find(|h| stands(bytes, place, coding, h)) else {
                continue;
            };
            let start = place + directory.len() * step(coding);
            let (mut end, mut name) = (start, String::new());
            while let Some(c) = at(bytes, end, coding) {
                let ends = c.is_control() || "\\/:*?\"<>|;,".contains(c);
                if ends || name.chars().count() >= LONGEST_NAME {
                    break;
                }
                name.push(c);
                end += step(coding);
            }
            if !name.is_empty() && !NOBODY.contains(&name.to_lowercase().as_str()) {
                return Some(Named { coding, start, end, name });
            }
        }
    }
    None
}

/// Replaces the parts of a SID that tell the machine, the domain and the account; those that every
/// machine has stay. `sid` is the SID as stored.
pub(super) fn sid(mask: &Mask, sid: &mut [u8]) -> bool {
    let &mut [1, count, 0, 0, 0, 0, 0, authority, ref mut rest @ ..] = sid else { return false };
    let mut parts: Vec<u32> = Vec::new();
    for word in rest.chunks_exact(4).take(count.into()) {
        parts.push(word.first_chunk().map_or(0, |w| u32::from_le_bytes(*w)));
    }
    let before = parts.clone();
    for (number, part) in parts.iter_mut().enumerate() {
        *part = replaced(mask, authority.into(), &before, number);
    }
    for (word, part) in rest.chunks_exact_mut(4).zip(&parts) {
        word.copy_from_slice(&part.to_le_bytes());
    }
    parts != before
}

/// What a sub-authority becomes.
fn replaced(mask: &Mask, authority: u64, parts: &[u32], number: usize) -> u32 {
    let part = parts.get(number).copied().unwrap_or(0);
    match (authority, parts.first()) {
        // S-1-5-21-machine-machine-machine-account; accounts below 1000 are everywhere the same.
        (5, Some(21)) if (1..=3).contains(&number) => mask.same_digits(part),
        (5, Some(21)) if number > 3 && part >= 1000 => mask.same_digits(part),
        // S-1-12-1-account, of a directory in the cloud.
        (12, Some(1)) if number >= 1 => mask.same_digits(part),
        _ => part,
    }
}

/// Replaces the next SID that is written as text, from a place on. Returns where it ends.
pub(super) fn sid_text(mask: &Mask, bytes: &mut [u8], from: usize) -> Option<(usize, usize)> {
    for place in from..bytes.len() {
        if !matches!(bytes.get(place), Some(b'S' | b's')) {
            continue;
        }
        for coding in [Coding::Narrow, Coding::Wide] {
            for (prefix, authority, first) in [("s-1-5-21-", 5, 21), ("s-1-12-1-", 12, 1)] {
                if !stands(bytes, place, coding, prefix) {
                    continue;
                }
                let mut parts = vec![first];
                let mut spans = Vec::new();
                let mut next = place + prefix.len() * step(coding);
                while parts.len() < 8 {
                    let start = next;
                    let mut digits = String::new();
                    while let Some(c) = at(bytes, next, coding).filter(char::is_ascii_digit)
                        && digits.len() < 10
                    {
                        digits.push(c);
                        next += step(coding);
                    }
                    let Ok(part) = digits.parse::<u32>() else { break };
                    parts.push(part);
                    spans.push((start, digits.len()));
                    if at(bytes, next, coding) != Some('-') {
                        break;
                    }
                    next += step(coding);
                }
                if spans.is_empty() {
                    continue;
                }
                for (number, (start, len)) in spans.iter().enumerate() {
                    let part = replaced(mask, authority, &parts, number + 1);
                    let text = format!("{part:0len$}");
                    for (digit, c) in text.bytes().take(*len).enumerate() {
                        if let Some(byte) = bytes.get_mut(start + digit * step(coding)) {
                            *byte = c;
                        }
                    }
                }
                return Some((place, next));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn owners_of_homes() {
        for (text, owner) in [
            ("C:\\Users\\Jane Doe\\x.dll", Some("Jane Doe")),
            ("\\Device\\HarddiskVolume2\\USERS\\bob", Some("bob")),
            ("/home/ann/.bashrc", Some("ann")),
            ("C:\\Documents and Settings\\bob\\x", Some("bob")),
            ("C:\\Users\\Public\\x", None),
            ("C:\\Windows\\x", None),
        ] {
            let found = |bytes: &[u8]| home(bytes, 0).map(|n| n.name);
            assert_eq!(found(text.as_bytes()).as_deref(), owner, "{text}");
            assert_eq!(found(&[&[7], wide(text).as_slice()].concat()).as_deref(), owner, "{text}");
        }
        let twice = b"C:\\Users\\Public\\x C:\\Users\\bob\\";
        assert_eq!(home(twice, 0).map(|n| n.name).as_deref(), Some("bob"));
    }

    #[test]
    fn sids_as_bytes_and_as_text_stay_the_same_account() {
        let mask = Mask::new(b"salt");
        let parts = [21u32, 1_004_336_348, 1_177_238_915, 682_003_330, 1_001];
        let mut bytes = vec![1, 5, 0, 0, 0, 0, 0, 5];
        parts.iter().for_each(|p| bytes.extend(p.to_le_bytes()));
        let text = "S-1-5-21-1004336348-1177238915-682003330-1001";
        assert!(sid(&mask, &mut bytes));
        let after: Vec<_> =
            bytes[8..].chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        assert_eq!(after[0], 21);
        assert!(after.iter().skip(1).zip(&parts[1..]).all(|(a, b)| a != b));
        let expected: Vec<_> = after.iter().map(u32::to_string).collect();
        for mut written in [text.as_bytes().to_vec(), wide(text)] {
            let len = written.len();
            assert_eq!(sid_text(&mask, &mut written, 0), Some((0, len)));
            written.retain(|b| *b != 0);
            let written = String::from_utf8(written).unwrap();
            assert_eq!(written, format!("S-1-5-{}", expected.join("-")));
        }
        // The system's own stay.
        let mut system = vec![1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert!(!sid(&mask, &mut system));
        assert_eq!(sid_text(&mask, &mut b"S-1-5-18 S-1-5-32-544".to_vec(), 0), None);
    }
}
