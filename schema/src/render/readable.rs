//! Readable text in bytes of an unknown layout.

/// Units that a run of text has at least.
const MIN_UNITS: usize = 4;

/// The first character of scripts that most bytes would be some text of.
const FOREIGN: u16 = 0x700;

/// What stands between runs.
const BETWEEN: &str = " | ";

/// Adds the runs of readable text in a payload, in UTF-16 and in ASCII, with ` | ` between them.
///
/// A run has four characters at least. In UTF-16 they are Latin, Greek, Cyrillic, Hebrew or Arabic,
/// or in other scripts if a NUL ends them: most bytes would be some Chinese text.
pub fn readable_text(out: &mut String, payload: &[u8]) {
    let start = out.len();
    let mut rest = payload;
    while !rest.is_empty() {
        let (chars, taken) = wide_run(rest)
            .or_else(|| ascii_run(rest))
            .unwrap_or_default();
        if taken == 0 {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        if out.len() > start {
            out.push_str(BETWEEN);
        }
        out.push_str(&chars);
        rest = rest.get(taken..).unwrap_or_default();
    }
}

/// The run of UTF-16 at the start, and its bytes.
fn wide_run(bytes: &[u8]) -> Option<(String, usize)> {
    let units = bytes
        .as_chunks()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit));
    let mut text = String::new();
    let (mut count, mut foreign, mut ended) = (0, None, false);
    for unit in units {
        let is_foreign = unit >= FOREIGN;
        let c = char::from_u32(unit.into()).filter(|c| is_text(*c));
        let Some(c) = c.filter(|_| *foreign.get_or_insert(is_foreign) == is_foreign) else {
            ended = unit == 0;
            break;
        };
        text.push(c);
        count += 1;
    }
    // Latin text that begins a byte later looks like Chinese, with zeros in all low bytes.
    let shifted = text.encode_utf16().filter(|unit| unit & 0xff == 0).count() * 2 > count;
    // So does ASCII, with two letters in one.
    let ascii = bytes
        .iter()
        .take(count * 2)
        .all(|b| matches!(b, b' '..=b'~'));
    let is_text = foreign == Some(false) || ended && !shifted && !ascii;
    (count >= MIN_UNITS && is_text).then_some((text, count * 2))
}

/// The run of ASCII at the start, and its bytes.
fn ascii_run(bytes: &[u8]) -> Option<(String, usize)> {
    let text: String = bytes
        .iter()
        .map(|b| char::from(*b))
        .take_while(|c| matches!(c, ' '..='~'))
        .collect();
    let taken = text.len();
    (taken >= MIN_UNITS).then_some((text, taken))
}

fn is_text(c: char) -> bool {
    matches!(c, ' '..='~') || (c >= '\u{a0}' && c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(payload: &[u8]) -> String {
        let mut out = String::new();
        readable_text(&mut out, payload);
        out
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn runs_of_both_encodings_are_found() {
        let payload = [
            &[1, 0, 0, 0xff][..],
            &wide("C:\\Größe\0"),
            b"\x07GET /\0",
            &wide("abc\0"),
        ]
        .concat();
        assert_eq!(text(&payload), "C:\\Größe | GET /");
        let guid = [0x33, 0x94, 0x22, 0x86, 0x90, 0x71, 0x11, 0x82];
        assert_eq!(text(&[&guid[..], &wide("Ethernet\0")].concat()), "Ethernet");
        // At an odd offset, and in another script.
        assert_eq!(
            text(&[&[9][..], &wide("svchost.exe")].concat()),
            "svchost.exe"
        );
        assert_eq!(text(&wide("日本語版\0")), "日本語版");
        assert_eq!(text(b"GET /one\0\0"), "GET /one");
    }

    #[test]
    fn bytes_that_are_no_text_have_none() {
        let noise: Vec<u8> = (0..=255).rev().collect();
        assert!(!text(&noise).contains('\u{4e00}'));
        assert_eq!(text(&[]), "");
        assert_eq!(
            text(&[0x11, 0x82, 0x33, 0x94, 0x22, 0x86, 0x90, 0x71, 0x01]),
            ""
        );
    }
}
