//! The compression formats of compressed traces, each bounded by the size its buffer declares.

use crate::constants::CompressionFormat;
use crate::cursor::Cursor;

/// Compressed bytes that do not stand for as many bytes as were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged after {consumed} bytes, which give {produced}")]
pub struct DecodeFault {
    /// Sound bytes at the start of the output.
    pub produced: usize,
    /// Bytes of the input that were used for them.
    pub consumed: usize,
}

/// Fills `output` from `input`, and ignores what is left of `input` then.
///
/// # Errors
/// When the input ends before, or is damaged; what was produced until then is sound.
pub fn decompress(
    format: CompressionFormat,
    input: &[u8],
    output: &mut [u8],
) -> Result<(), DecodeFault> {
    let mut c = Cursor::new(input);
    let mut produced = 0;
    let whole =
        format == CompressionFormat::XPRESS && xpress(&mut c, output, &mut produced).is_some();
    if whole { Ok(()) } else { Err(DecodeFault { produced, consumed: c.position() }) }
}

fn xpress(c: &mut Cursor<'_>, output: &mut [u8], produced: &mut usize) -> Option<()> {
    let (mut flags, mut left) = (0u32, 0);
    let mut shared: Option<u8> = None;
    while *produced < output.len() {
        if left == 0 {
            (flags, left) = (c.u32()?, 32);
        }
        left -= 1;
        if flags >> left & 1 == 0 {
            *output.get_mut(*produced)? = c.u8()?;
            *produced += 1;
            continue;
        }
        let token = usize::from(c.u16()?);
        let mut len = token & 7;
        if len == 7 {
            let nibble = match shared.take() {
                Some(byte) => byte >> 4,
                None => {
                    let byte = c.u8()?;
                    shared = Some(byte);
                    byte & 15
                }
            };
            len = usize::from(nibble) + 7;
            if nibble == 15 {
                len = usize::from(c.u8()?) + 22;
                if len == 255 + 22 {
                    len = match c.u16()? {
                        0 => usize::try_from(c.u32()?).ok()?,
                        long => long.into(),
                    };
                    len = len.checked_sub(22)? + 22;
                }
            }
        }
        let from = produced.checked_sub((token >> 3) + 1)?;
        for k in 0..(len + 3).min(output.len() - *produced) {
            let byte = *output.get(from + k)?;
            *output.get_mut(*produced)? = byte;
            *produced += 1;
        }
    }
    Some(())
}
