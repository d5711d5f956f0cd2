//! An iterator over record batches, for engines and bindings.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use etl_format::read::Source;

use crate::options::Options;
use crate::recorded::Recorded;
use crate::{Error, Result};

/// The number of batches that wait for their reader.
const AHEAD: usize = 1;

/// The batches of a table of a trace, one after the other: an iterator, and Arrow's
/// [`RecordBatchReader`].
///
/// Another thread makes them, one ahead of the reader. When the reader is dropped, the thread stops
/// reading the trace.
///
/// ```no_run
/// use std::fs::File;
///
/// use etl_format::read::FileSource;
/// use etl_tables::{Options, Reader};
///
/// let source = FileSource::new(File::open("trace.etl")?)?;
/// let options = Options::new("trace.etl").columns(["process", "pause_us"]);
/// for batch in Reader::open(source, "gcs", options)? {
///     println!("{} collections", batch?.num_rows());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    schema: SchemaRef,
    batches: Receiver<Result<RecordBatch>>,
    ended: bool,
    /// Dropped with the reader: then the source fails.
    _wanted: Arc<()>,
}

/// Passes the batches of a table of a trace to a function, on the thread of the caller: for systems
/// without threads, such as WebAssembly. [`Reader::open`] describes the names of tables.
///
/// # Errors
/// When the trace cannot be read, there is no such table or column, or the function fails.
///
/// ```
/// use etl_tables::{Options, for_each_batch};
///
/// # let bytes = etl_events::testing::trace();
/// let mut rows = 0;
/// for_each_batch(bytes.as_slice(), "events", Options::new("trace.etl"), |batch| {
///     rows += batch.num_rows();
///     Ok(())
/// })?;
/// assert_eq!(rows, 5);
/// # Ok::<(), etl_tables::Error>(())
/// ```
pub fn for_each_batch<S: Source>(
    source: S,
    table: &str,
    options: Options,
    mut use_batch: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let mut recorded = Recorded::open(source, options)?;
    let plan = recorded.plan(table)?;
    recorded.write(&plan, &mut use_batch)
}

/// A source that fails after the reader was dropped. Tables about the machine read the whole trace
/// before their first row, so a batch that nobody receives would be too late to stop them.
#[derive(Debug)]
struct WhileWanted<S> {
    source: S,
    wanted: Weak<()>,
}

impl<S: Source> Source for WhileWanted<S> {
    type Block = S::Block;

    fn read(&mut self, offset: u64, len: usize, block: &mut S::Block) -> io::Result<()> {
        if self.wanted.strong_count() == 0 {
            return Err(io::Error::other(Error::Stopped));
        }
        self.source.read(offset, len, block)
    }

    fn size(&self) -> Option<u64> {
        self.source.size()
    }
}

impl Reader {
    /// The rows of a table: one of [`tables::ALL`](crate::tables::ALL), or `Provider.Event` for the
    /// events of one kind.
    ///
    /// # Errors
    /// When the trace cannot be opened, or there is no such table or column.
    pub fn open<S>(source: S, table: &str, options: Options) -> Result<Self>
    where
        S: Source + Send + 'static,
    {
        let wanted = Arc::new(());
        let source = WhileWanted {
            source,
            wanted: Arc::downgrade(&wanted),
        };
        let mut recorded = Recorded::open(source, options)?;
        let plan = recorded.plan(table)?;
        let schema = plan.schema();
        let (to, batches) = sync_channel(AHEAD);
        // The thread ends by itself when the reader is dropped.
        std::thread::spawn(move || {
            let written = recorded.write(&plan, &mut |batch| send(&to, Ok(batch)));
            if let Err(error) = written
                && !matches!(error, Error::Stopped)
            {
                // If the reader was dropped, the error is lost.
                let _ = send(&to, Err(error));
            }
        });
        Ok(Reader {
            schema,
            batches,
            ended: false,
            _wanted: wanted,
        })
    }
}

fn send(to: &SyncSender<Result<RecordBatch>>, batch: Result<RecordBatch>) -> Result<()> {
    to.send(batch).map_err(|_| Error::Stopped)
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match self.batches.recv() {
            Ok(Ok(batch)) => Some(Ok(batch)),
            Ok(Err(error)) => {
                self.ended = true;
                Some(Err(error.into()))
            }
            Err(_) => {
                self.ended = true;
                None
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
