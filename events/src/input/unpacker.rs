//! Opens bytes that may be packed.

use super::bytes::{Bytes, Peeked};
use super::error::{Advice, Error};
use super::head::Head;
use super::packing::{Content, Packing, Unpacker};
use super::sniff;
#[cfg(feature = "unpack")]
use super::unpack::unpack;

/// Bytes that were unpacked if they were packed.
#[derive(Debug)]
pub struct Unpacked {
    /// The bytes.
    pub bytes: Bytes,
    /// Their beginning, and the name of the archive, for messages.
    pub head: Head,
}

impl Unpacker {
    /// Unpacks bytes if they are packed.
    ///
    /// # Errors
    /// When the bytes cannot be read or unpacked, or are not a trace.
    pub fn open(&self, bytes: Bytes) -> Result<Unpacked, Error> {
        let Peeked { head, bytes } = bytes.peek(Head::SIZE)?;
        let packing = Packing::of(&head);
        if self.member.is_some() && packing != Some(Packing::Zip) {
            return Err(Error::new(
                "only a ZIP archive has files to choose from, and this is not one",
            )
            .advise(Advice::OmitMember));
        }
        let Some(packing) = packing else {
            sniff::reject_other_formats(&head)?;
            return Ok(Unpacked {
                bytes,
                head: Head {
                    bytes: head,
                    from: None,
                },
            });
        };
        let Content { bytes, from } = unpack(bytes, packing, self)?;
        let Peeked { head, bytes } = bytes.peek(Head::SIZE)?;
        sniff::reject_other_formats(&head).map_err(|error| error.unpacked_from(Some(&from)))?;
        Ok(Unpacked {
            bytes,
            head: Head {
                bytes: head,
                from: Some(from),
            },
        })
    }
}

/// Rejects packed bytes: only the feature `unpack` unpacks them.
#[cfg(not(feature = "unpack"))]
fn unpack(_: Bytes, packing: Packing, _: &Unpacker) -> Result<Content, Error> {
    let format = match packing {
        Packing::Gzip => "gzip data",
        Packing::Zstandard => "Zstandard data",
        Packing::Zip => "a ZIP archive",
    };
    Err(Error::new(format!(
        "this is {format}, which this program cannot unpack"
    ))
    .hint_text("unpack it first, or build the program with the feature `unpack`"))
}
