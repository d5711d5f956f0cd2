//! What a stream states about itself: clock, process, machine.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::time::{FileTime, Ticks};

/// Bytes of the `Trace` object of version 4.
pub(crate) const TRACE_OBJECT_SIZE: usize = 48;

/// The highest number of properties. The format defines 4, one_collect writes 2.
const MAX_PROPERTIES: u32 = 1 << 16;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 4 or 6. Version 5 adds optional parts to version 4, and its writers state 4.
    pub major: u32,
    /// 0 before version 6.
    pub minor: u32,
}

/// What a stream states about itself.
///
/// ```
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let stream = write::sample();
/// use etl_nettrace::Reader;
///
/// let reader = Reader::new(stream.as_slice())?;
/// let header = reader.header();
/// assert_eq!((header.version.major, header.pointer_size), (4, 8));
/// assert_eq!(header.process_id, Some(4711));
/// assert_eq!(header.file_time(header.start_ticks), header.start_time);
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// The version of the format.
    pub version: Version,
    /// The time in UTC at [`start_ticks`](Self::start_ticks), in whole milliseconds. `None` if the
    /// stream states a date that does not exist.
    pub start_time: Option<FileTime>,
    /// The clock at [`start_time`](Self::start_time).
    pub start_ticks: Ticks,
    /// Ticks in a second: 1,000,000,000 on Linux and macOS.
    pub frequency: i64,
    /// Bytes of an address: 4 or 8.
    pub pointer_size: u8,
    /// The traced process. In version 6 each thread may have a process of its own.
    pub process_id: Option<u64>,
    /// Logical processors of the machine.
    pub processor_count: Option<u32>,
    /// How often the writer expects samples. The runtimes state nanoseconds between two samples.
    pub sampling_rate: Option<u64>,
    /// The other properties of version 6, and those above as the stream states them.
    pub properties: Vec<Property>,
}

/// A named text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub key: String,
    /// Its text.
    pub value: String,
}

impl Property {
    pub(crate) fn read(cursor: &mut Cursor<'_>, what: &'static str) -> Result<Self> {
        let key = cursor.utf8_text(what)?;
        let value = cursor.utf8_text(what)?;
        Ok(Property { key, value })
    }
}

impl TraceHeader {
    /// The time in UTC of a timestamp, rounded down to 100 ns. Its error is up to a millisecond,
    /// which is the resolution of [`start_time`](Self::start_time); differences between two times
    /// are exact.
    ///
    /// `None` if the stream has no start time or no frequency, or the time does not fit.
    #[must_use]
    pub fn file_time(&self, timestamp: Ticks) -> Option<FileTime> {
        let ticks = i128::from(timestamp.get()) - i128::from(self.start_ticks.get());
        self.start_time?.add_ticks(ticks, self.frequency)
    }

    /// A property of version 6 by its name.
    ///
    /// ```
    /// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
    /// # let stream = write::sample_of_version_6();
    /// use etl_nettrace::Reader;
    ///
    /// let reader = Reader::new(stream.as_slice())?;
    /// assert_eq!(reader.header().property("HardwareThreadCount"), Some("2"));
    /// # Ok::<(), etl_nettrace::Error>(())
    /// ```
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&str> {
        let property = self
            .properties
            .iter()
            .find(|property| property.key == key)?;
        Some(&property.value)
    }

    /// The start time, the clock and its frequency, which all versions have first.
    fn read_clock(cursor: &mut Cursor<'_>, version: Version) -> Result<Self> {
        let mut parts = [0; 8];
        for part in &mut parts {
            *part = cursor.u16("the start time")?;
        }
        Ok(TraceHeader {
            version,
            start_time: FileTime::from_system_time_parts(parts),
            start_ticks: Ticks::new(cursor.i64("the clock at the start time")?),
            frequency: cursor.i64("the frequency of the clock")?,
            pointer_size: 0,
            process_id: None,
            processor_count: None,
            sampling_rate: None,
            properties: Vec::new(),
        })
    }

    fn read_pointer_size(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let what = "the size of a pointer";
        let start = cursor.offset();
        let size = cursor.u32(what)?;
        self.pointer_size = match size {
            4 => 4,
            8 => 8,
            other => return Err(Error::invalid(start, what, other.into(), "4 or 8")),
        };
        Ok(())
    }

    /// The content of the `Trace` object of version 4.
    pub(crate) fn read_object(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut header = Self::read_clock(cursor, Version { major: 4, minor: 0 })?;
        header.read_pointer_size(cursor)?;
        header.process_id = Some(cursor.u32("the process id")?.into());
        header.processor_count = Some(cursor.u32("the number of processors")?);
        header.sampling_rate = Some(cursor.u32("the sampling rate")?.into());
        Ok(header)
    }

    /// The content of the trace block of version 6.
    pub(crate) fn read_block(cursor: &mut Cursor<'_>, version: Version) -> Result<Self> {
        let mut header = Self::read_clock(cursor, version)?;
        header.read_pointer_size(cursor)?;
        let start = cursor.offset();
        let what = "the number of properties of the trace";
        let count = cursor.u32(what)?;
        if count > MAX_PROPERTIES {
            return Err(Error::invalid(start, what, count.into(), "0 to 0x10000"));
        }
        for _ in 0..count {
            let property = Property::read(cursor, "a property of the trace")?;
            match property.key.as_str() {
                "ProcessId" => header.process_id = property.value.parse().ok(),
                "HardwareThreadCount" => header.processor_count = property.value.parse().ok(),
                "ExpectedCPUSamplingRate" => header.sampling_rate = property.value.parse().ok(),
                _ => {}
            }
            header.properties.push(property);
        }
        Ok(header)
    }
}
