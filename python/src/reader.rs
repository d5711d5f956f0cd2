//! Reads the selected records of traces in time order, chunk by chunk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use etl_format::constants::RecordKind;
use etl_format::read::{Options, Order, OrderCheck, Record, RecordBatch, Records, Trace};

use crate::chunk::Chunk;
use crate::data::SharedSource;
use crate::decoding::{Decoding, Locked};
use crate::error::Fault;

/// Records of a chunk.
const CHUNK: usize = 1 << 10;

/// Records after which a chunk ends, however few of them are selected: then the interpreter looks
/// for signals.
const SCAN: usize = 1 << 16;

/// The id of the events by which an `EventSource` logs its manifest.
const MANIFEST_EVENT: u16 = 0xfffe;

/// Reads the selected records of traces.
pub struct Reader {
    files: Vec<FileReader>,
    decodings: Arc<[Arc<Decoding>]>,
    /// The times of the next records of several traces.
    waiting: BinaryHeap<Reverse<(i64, usize)>>,
    started: bool,
    /// Bytes of the records that were read.
    pub read: u64,
    ended: bool,
}

/// The reader of one trace.
struct FileReader {
    records: Records<SharedSource>,
    /// Records that define schemas, to be learned after the events before them were decoded.
    lessons: RecordBatch,
}

/// What follows a record.
enum Next {
    Go,
    /// The chunk ends, so that its events are decoded without later schemas.
    EndChunk,
}

impl Reader {
    /// A reader of traces.
    pub fn new(decodings: Vec<Arc<Decoding>>, order: Order) -> Result<Self, Fault> {
        let mut readers = Vec::new();
        for decoding in &decodings {
            let options = Options {
                order_check: OrderCheck::Lookahead,
                limits: decoding.files.limits,
                ..Options::salvage()
            };
            let source = SharedSource(Arc::clone(&decoding.data));
            let records = Trace::open(source, &options)
                .and_then(|trace| trace.into_records(order))
                .map_err(|error| Fault::format(&decoding.name, &error))?;
            readers.push(FileReader {
                records,
                lessons: RecordBatch::default(),
            });
        }
        Ok(Reader {
            files: readers,
            decodings: decodings.into(),
            waiting: BinaryHeap::new(),
            started: false,
            read: 0,
            ended: false,
        })
    }

    /// The next records; `None` at the end. It can be empty before that.
    pub fn next(&mut self) -> Result<Option<Chunk>, Fault> {
        if self.ended {
            return Ok(None);
        }
        let mut chunk = Chunk::new(Arc::clone(&self.decodings), CHUNK);
        let more = match self.files.len() {
            1 => self.fill_of_one(&mut chunk)?,
            _ => self.fill_of_several(&mut chunk)?,
        };
        self.ended = !more;
        Ok(if more || chunk.len() > 0 {
            Some(chunk)
        } else {
            None
        })
    }

    fn fill_of_one(&mut self, chunk: &mut Chunk) -> Result<bool, Fault> {
        let Some(reader) = self.files.first_mut() else {
            return Ok(false);
        };
        let Some(decoding) = self.decodings.first() else {
            return Ok(false);
        };
        let mut locked = decoding.lock();
        reader.learn(&mut locked);
        for _ in 0..SCAN {
            match reader.take(0, decoding, &mut locked, chunk, &mut self.read)? {
                None => return Ok(false),
                Some(Next::EndChunk) => break,
                Some(Next::Go) if chunk.len() >= CHUNK => break,
                Some(Next::Go) => {}
            }
        }
        Ok(true)
    }

    fn fill_of_several(&mut self, chunk: &mut Chunk) -> Result<bool, Fault> {
        if !self.started {
            self.started = true;
            for file in 0..self.files.len() {
                self.wait(file)?;
            }
        }
        for (reader, decoding) in self.files.iter_mut().zip(self.decodings.iter()) {
            reader.learn(&mut decoding.lock());
        }
        for _ in 0..SCAN {
            let Some(Reverse((_, file))) = self.waiting.pop() else {
                return Ok(false);
            };
            let Some(reader) = self.files.get_mut(file) else {
                continue;
            };
            let Some(decoding) = self.decodings.get(file) else {
                continue;
            };
            let mut locked = decoding.lock();
            let next = reader.take(file, decoding, &mut locked, chunk, &mut self.read)?;
            drop(locked);
            self.wait(file)?;
            if matches!(next, Some(Next::EndChunk)) || chunk.len() >= CHUNK {
                break;
            }
        }
        Ok(true)
    }

    /// Queues the next record of a trace by its time.
    fn wait(&mut self, file: usize) -> Result<(), Fault> {
        let Some(reader) = self.files.get_mut(file) else {
            return Ok(());
        };
        let Some(decoding) = self.decodings.get(file) else {
            return Ok(());
        };
        let next = reader.records.next_timestamp();
        let next = next.map_err(|error| Fault::format(&decoding.name, &error))?;
        if let Some(timestamp) = next {
            let time = decoding.clock.time(timestamp).get();
            self.waiting.push(Reverse((time, file)));
        }
        Ok(())
    }
}

impl FileReader {
    /// Learns the schemas that the last records of the previous chunk define.
    fn learn(&mut self, locked: &mut Locked<'_>) {
        if !self.lessons.is_empty() {
            for record in self.lessons.records() {
                locked.learn(&record);
            }
            self.lessons.clear();
        }
    }

    /// Adds the next record to the chunk if it is selected. Returns `None` after the last record.
    #[inline]
    fn take(
        &mut self,
        file: usize,
        decoding: &Decoding,
        locked: &mut Locked<'_>,
        chunk: &mut Chunk,
        read: &mut u64,
    ) -> Result<Option<Next>, Fault> {
        let FileReader { records, lessons } = self;
        let record = match records.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(None),
            Err(error) => return Err(Fault::format(&decoding.name, &error)),
        };
        *read += record.bytes().len() as u64;
        let defines = defines_schemas(&record);
        if !defines || chunk.len() == 0 {
            locked.learn(&record);
        }
        let is_selected = locked.admits(&record);
        if is_selected {
            chunk.push(file, decoding, &record);
        }
        // If the chunk was empty, the schemas were learned at once.
        if defines && chunk.len() > usize::from(is_selected) {
            lessons.push(&record);
            return Ok(Some(Next::EndChunk));
        }
        Ok(Some(Next::Go))
    }
}

/// Whether a record defines schemas of other records.
#[inline]
fn defines_schemas(record: &Record<'_>) -> bool {
    match record.kind() {
        RecordKind::EVENT32 | RecordKind::EVENT64 => record
            .descriptor()
            .is_some_and(|descriptor| descriptor.id == MANIFEST_EVENT),
        RecordKind::FULL32 | RecordKind::FULL64 => {
            record.provider() == Some(etl_schema::providers::EVENT_METADATA)
        }
        _ => false,
    }
}
