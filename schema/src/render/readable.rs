//! Readable text in bytes of an unknown layout.

/// The smallest number of code units in a run of text.
const MIN_UNITS: usize = 4;

/// The first code unit of scripts, such as Chinese, in which nearly any two bytes are a character.
const FOREIGN: u16 = 0x700;

/// The text between two runs.
const BETWEEN: &str = " | ";

/// A run of readable text, and the number of its bytes in the payload.
#[derive(Default)]
struct Run {
    text: String,
    bytes: usize,
}

/// Adds the runs of readable text in a payload, in UTF-16 and in ASCII, with ` | ` between them.
///
/// A run has at least four characters. In UTF-16 they are Latin, Greek, Cyrillic, Hebrew or Arabic.
/// Text in other scripts must end with a NUL, because nearly any bytes are Chinese text.
pub fn readable_text(out: &mut String, payload: &[u8]) {
    let start = out.len();
    let mut rest = payload;
    while !rest.is_empty() {
        let run = wide_run(rest).or_else(|| ascii_run(rest));
        let Run { text, bytes } = run.unwrap_or_default();
        if bytes == 0 {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        if out.len() > start {
            out.push_str(BETWEEN);
        }
        out.push_str(&text);
        rest = rest.get(bytes..).unwrap_or_default();
    }
}

/// The run of UTF-16 at the start.
fn wide_run(bytes: &[u8]) -> Option<Run> {
    let mut text = String::new();
    let mut count = 0;
    let mut foreign = None;
    let mut ends_with_nul = false;
    for unit in bytes.as_chunks().0 {
        let unit = u16::from_le_bytes(*unit);
        let is_foreign = unit >= FOREIGN;
        let is_same_script = foreign.is_none_or(|foreign| foreign == is_foreign);
        match char::from_u32(unit.into()) {
            Some(c) if is_text(c) && is_same_script => text.push(c),
            _ => {
                ends_with_nul = unit == 0;
                break;
            }
        }
        foreign = Some(is_foreign);
        count += 1;
    }
    // Latin text that begins a byte later looks like Chinese, with zeros in all low bytes.
    let shifted = text.encode_utf16().filter(|unit| unit & 0xff == 0).count() * 2 > count;
    // So does ASCII, with two letters in one.
    let ascii = bytes
        .iter()
        .take(count * 2)
        .all(|b| matches!(b, b' '..=b'~'));
    let is_text = foreign == Some(false) || ends_with_nul && !shifted && !ascii;
    if count < MIN_UNITS || !is_text {
        return None;
    }
    Some(Run {
        text,
        bytes: count * 2,
    })
}

/// The run of ASCII at the start.
fn ascii_run(bytes: &[u8]) -> Option<Run> {
    let chars = bytes.iter().map(|byte| char::from(*byte));
    let text: String = chars.take_while(|c| matches!(c, ' '..='~')).collect();
    if text.len() < MIN_UNITS {
        return None;
    }
    Some(Run {
        bytes: text.len(),
        text,
    })
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
