//! The threads of version 6, which are rows of the stream.

use crate::cursor::Cursor;
use crate::error::Result;
use crate::header::Property;

/// A thread of version 6. Events refer to its index. Versions 4 and 5 have only ids of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The index by which events and sequence points refer to it.
    pub index: u64,
    /// Its process, if the stream states it. The process of the header otherwise.
    pub process_id: Option<u64>,
    /// Its id in the operating system.
    pub thread_id: Option<u64>,
    /// Its name.
    pub name: Option<String>,
    /// Other properties.
    pub properties: Vec<Property>,
}

/// A thread that has ended. Its index may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedThread {
    /// The index of the thread.
    pub index: u64,
    /// The number of the last event that it captured, lost events included.
    pub sequence_number: u32,
}

impl Thread {
    /// A row of a thread block.
    pub(crate) fn read(row: &mut Cursor<'_>) -> Result<Self> {
        let mut thread = Thread {
            index: row.var64("the index of a thread")?,
            ..Thread::default()
        };
        while !row.is_empty() {
            match row.u8("a property of a thread")? {
                1 => thread.name = Some(row.utf8_text("the name of a thread")?),
                2 => thread.process_id = Some(row.var64("the process id of a thread")?),
                3 => thread.thread_id = Some(row.var64("the id of a thread")?),
                4 => {
                    let property = Property::read(row, "a property of a thread")?;
                    thread.properties.push(property);
                }
                // The length of an unknown property is not known.
                _ => break,
            }
        }
        Ok(thread)
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn size_in_memory(&self) -> usize {
        let mut size = size_of::<Self>() + self.name.as_ref().map_or(0, String::len);
        for property in &self.properties {
            size += size_of::<Property>() + property.key.len() + property.value.len();
        }
        size
    }
}

impl RemovedThread {
    /// A row of a block of removed threads.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(RemovedThread {
            index: cursor.var64("the index of a removed thread")?,
            sequence_number: cursor.var32("the sequence number of a removed thread")?,
        })
    }
}
