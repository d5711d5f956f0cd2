//! Inputs that failed once, from `tests/regressions`: hexadecimal text in files named
//! `TARGET-WHAT.hex`; lines that begin with `#` are comments.

use std::{fs, io};

/// An input that failed once.
#[derive(Clone, Debug)]
pub struct Regression {
    /// The target that failed.
    pub target: String,
    /// The file's name without its extension.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// All of them, by name.
///
/// # Errors
/// When a file cannot be read, or its name or content has another form.
pub fn regressions() -> io::Result<Vec<Regression>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(etl_test_support::root().join("tests/regressions"))? {
        let path = entry?.path();
        let wrong = |what: &str| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: {what}", path.display()),
            )
        };
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (target, _) = name
            .split_once('-')
            .ok_or_else(|| wrong("no target in its name"))?;
        let bytes = unhex(&fs::read_to_string(&path)?).ok_or_else(|| wrong("no hexadecimal"))?;
        out.push(Regression {
            target: target.to_owned(),
            name,
            bytes,
        });
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

/// Bytes of hexadecimal text; `None` if it has other characters or an odd number of digits.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<Vec<u8>>>()?;
    let whole = digits.len().is_multiple_of(2);
    whole.then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::unhex;

    #[test]
    fn unhex_refuses_other_text() {
        assert_eq!(unhex("# about\n00fF\n1 2\n"), Some(vec![0, 0xff, 0x12]));
        assert_eq!(unhex("001"), None);
        assert_eq!(unhex("0x"), None);
    }
}
