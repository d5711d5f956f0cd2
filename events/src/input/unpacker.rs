//! Opens bytes that may be packed, or an EventPipe stream.

use super::bytes::{Bytes, Peeked};
use super::error::{Advice, Error};
use super::eventpipe::{Converted, convert_stream};
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
    /// Unpacks bytes if they are packed, and converts an EventPipe stream to a trace.
    ///
    /// # Errors
    /// When the bytes cannot be read, unpacked or converted, or are not a trace.
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
            return self.open_unpacked(Peeked { head, bytes }, None);
        };
        let Content { bytes, from } = unpack(bytes, packing, self)?;
        let peeked = bytes.peek(Head::SIZE)?;
        let opened = self.open_unpacked(peeked, Some(from.clone()));
        opened.map_err(|error| error.unpacked_from(Some(&from)))
    }

    /// Opens bytes that are not packed, and converts an EventPipe stream. `from` is the archive
    /// from which they were unpacked.
    fn open_unpacked(&self, peeked: Peeked, from: Option<String>) -> Result<Unpacked, Error> {
        if sniff::is_eventpipe(&peeked.head) {
            let Converted { trace, conversion } = convert_stream(peeked.bytes, self)?;
            let Peeked { head, bytes } = Bytes::Whole(trace).peek(Head::SIZE)?;
            let head = Head {
                bytes: head,
                from,
                conversion: Some(conversion),
            };
            return Ok(Unpacked { bytes, head });
        }
        sniff::reject_other_formats(&peeked.head)?;
        let head = Head {
            bytes: peeked.head,
            from,
            conversion: None,
        };
        Ok(Unpacked {
            bytes: peeked.bytes,
            head,
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
