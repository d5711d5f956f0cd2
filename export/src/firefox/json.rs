//! Writes JSON piece by piece: the tables are too large to be built first.

use std::io::{self, Write};

use etl_schema::render::EscapedJson;

/// Units of 100 ns in a millisecond.
const PER_MILLISECOND: u64 = 10_000;

pub(super) struct Json<W> {
    out: W,
    digits: itoa::Buffer,
}

impl<W: Write> Json<W> {
    pub fn new(out: W) -> Self {
        Json {
            out,
            digits: itoa::Buffer::new(),
        }
    }

    /// Writes a text that is JSON already.
    #[inline]
    pub fn raw(&mut self, json: &str) -> io::Result<()> {
        self.out.write_all(json.as_bytes())
    }

    /// A value that is built as a whole.
    pub fn value(&mut self, value: &serde_json::Value) -> io::Result<()> {
        serde_json::to_writer(EscapedJson::new(&mut self.out), value).map_err(io::Error::from)
    }

    #[inline]
    pub fn number(&mut self, number: u64) -> io::Result<()> {
        self.out.write_all(self.digits.format(number).as_bytes())
    }

    /// A number, or `null`.
    #[inline]
    pub fn optional(&mut self, number: Option<u64>) -> io::Result<()> {
        match number {
            Some(number) => self.number(number),
            None => self.raw("null"),
        }
    }

    pub fn text(&mut self, text: &str) -> io::Result<()> {
        serde_json::to_writer(EscapedJson::new(&mut self.out), text).map_err(io::Error::from)
    }

    /// A time of 100 ns in milliseconds.
    #[inline]
    pub fn millis(&mut self, time: u64) -> io::Result<()> {
        self.number(time / PER_MILLISECOND)?;
        let mut rest = time % PER_MILLISECOND;
        if rest == 0 {
            return Ok(());
        }
        let mut fraction = [b'.', b'0', b'0', b'0', b'0'];
        for digit in fraction.iter_mut().skip(1).rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        let zeros = fraction
            .iter()
            .rev()
            .take_while(|&&digit| digit == b'0')
            .count();
        self.out
            .write_all(fraction.get(..fraction.len() - zeros).unwrap_or_default())
    }

    /// A column of a table, with the comma after it.
    pub fn column<T>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.raw("\"")?;
        self.raw(name)?;
        self.raw("\":[")?;
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                self.raw(",")?;
            }
            put(self, value)?;
        }
        self.raw("],")
    }

    /// A column with the same JSON in each row.
    pub fn constant(&mut self, name: &str, rows: usize, json: &str) -> io::Result<()> {
        self.column(name, 0..rows, |out, _| out.raw(json))
    }

    /// The end of a table: the number of its rows.
    pub fn end(&mut self, rows: usize) -> io::Result<()> {
        self.raw("\"length\":")?;
        self.number(rows as u64)?;
        self.raw("}")
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub fn into_inner(self) -> W {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn millis_has_no_zeros_at_the_end() {
        for (time, text) in [
            (0, "0"),
            (10_000, "1"),
            (10_001, "1.0001"),
            (123_400, "12.34"),
        ] {
            let mut json = Json::new(Vec::new());
            json.millis(time).unwrap();
            assert_eq!(String::from_utf8(json.into_inner()).unwrap(), text);
        }
    }
}
