//! Events.

use std::sync::Arc;

use crate::guid::Guid;
use crate::labels::Label;
use crate::metadata::Metadata;
use crate::threads::Thread;
use crate::time::Ticks;

/// An event. It borrows its payload and its stack from the reader.
///
/// ```
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let sample = write::sample();
/// use etl_nettrace::Reader;
///
/// let mut reader = Reader::new(sample.as_slice())?;
/// let event = reader.next_event()?.expect("the sample has one");
/// assert_eq!((event.provider(), event.id(), event.version()), ("Contoso-Web", 7, 0));
/// assert_eq!((event.thread_id, event.sequence_number), (31, 1));
/// assert_eq!(event.stack, [0x7f01, 0x7f02]);
/// assert_eq!(event.payload, b"\x2a\0\0\0/\0\0\0", "a number, then UTF-16 text");
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// File offset of its header.
    pub offset: u64,
    /// Provider, name, fields. A clone of the `Arc` outlives the event.
    pub metadata: &'a Arc<Metadata>,
    /// The number of the event among the events that [`capture_thread`](Self::capture_thread)
    /// captured, lost events included. The first is 1; after 2^32 - 1 follows 0.
    pub sequence_number: u32,
    /// The process of the thread in version 6; in earlier versions the process of the stream.
    pub process_id: Option<u64>,
    /// The thread that the event is about. In version 6 the index of the thread if the stream does
    /// not state its id.
    pub thread_id: u64,
    /// The thread that captured the event: its id, or in version 6 its index. It differs from
    /// [`thread_id`](Self::thread_id) for samples, which a thread of their own takes.
    pub capture_thread: u64,
    /// The processor; `None` if it is not known. The runtimes know it on Windows only.
    pub processor: Option<u32>,
    /// The time. [`TraceHeader::file_time`](crate::TraceHeader::file_time) converts it to UTC.
    pub timestamp: Ticks,
    /// The activity; [`Guid::ZERO`] if there is none.
    pub activity_id: Guid,
    /// The activity that caused this one; [`Guid::ZERO`] if there is none.
    pub related_activity_id: Guid,
    /// The id of the stack; 0 if there is none. Ids have a meaning up to the next sequence point.
    pub stack_id: u32,
    /// The addresses of the stack, innermost first. Empty if there is none, or if the stream does
    /// not define it. The runtimes write frames of managed code only.
    pub stack: &'a [u64],
    /// The thread of version 6, with its name.
    pub thread: Option<&'a Arc<Thread>>,
    /// The labels of version 6.
    pub labels: &'a [Label],
    /// Whether no later event of the stream is earlier than this one.
    pub is_barrier: bool,
    /// The payload: the fields of [`Metadata::fields`], without alignment.
    pub payload: &'a [u8],
}

impl<'a> Event<'a> {
    /// The name of the provider.
    #[must_use]
    pub fn provider(&self) -> &'a str {
        &self.metadata.provider
    }

    /// The name of the event. Empty for events of the runtime itself.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.metadata.name
    }

    /// The id of the event.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.metadata.event_id
    }

    /// The version of the event: of its labels, else of its metadata.
    #[must_use]
    pub fn version(&self) -> u32 {
        let mut version = self.metadata.version;
        for label in self.labels {
            if let Label::Version(label) = label {
                version = (*label).into();
            }
        }
        version
    }

    /// The level of the event: of its labels, else of its metadata.
    #[must_use]
    pub fn level(&self) -> u32 {
        let mut level = self.metadata.level;
        for label in self.labels {
            if let Label::Level(label) = label {
                level = (*label).into();
            }
        }
        level
    }

    /// The keywords of the event: of its labels, else of its metadata without
    /// [`SESSION_KEYWORDS`](crate::SESSION_KEYWORDS).
    #[must_use]
    pub fn keywords(&self) -> u64 {
        let mut keywords = self.metadata.own_keywords();
        for label in self.labels {
            if let Label::Keywords(label) = label {
                keywords = *label;
            }
        }
        keywords
    }

    /// The opcode of the event: of its labels, else [`Metadata::opcode_or_implied`].
    #[must_use]
    pub fn opcode(&self) -> u8 {
        let mut opcode = self.metadata.opcode_or_implied();
        for label in self.labels {
            if let Label::Opcode(label) = label {
                opcode = *label;
            }
        }
        opcode
    }
}
