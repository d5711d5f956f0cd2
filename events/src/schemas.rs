//! The schemas that traces define, for the events before them as well.

use etl_analysis::RecordObserver;
use etl_format::read::{Record, Records, Source};
use etl_schema::store::{SchemaStore, SchemasAhead};

/// Learns the schemas of each trace of a recording in a pass over their records that has another
/// purpose. Afterwards the events are decoded.
#[derive(Clone, Debug)]
pub struct SchemasOfTraces {
    /// The schemas that are known without the traces.
    initial: SchemaStore,
    traces: Vec<SchemasAhead>,
}

impl SchemasOfTraces {
    /// `initial` has the schemas that are known without the traces.
    #[must_use]
    pub fn new(initial: SchemaStore) -> Self {
        SchemasOfTraces {
            initial,
            traces: Vec::new(),
        }
    }

    /// The store with which a trace is decoded.
    #[must_use]
    pub fn store(&self, trace: usize) -> SchemaStore {
        match self.traces.get(trace) {
            Some(ahead) => ahead.clone().into_store(),
            None => self.initial.clone(),
        }
    }
}

impl RecordObserver for SchemasOfTraces {
    #[inline]
    fn record(&mut self, record: &Record<'_>, file: usize) {
        // Nearly all records define nothing.
        if !self.initial.may_learn(record) {
            return;
        }
        if self.traces.len() <= file {
            self.traces
                .resize_with(file + 1, || SchemasAhead::new(self.initial.clone()));
        }
        if let Some(trace) = self.traces.get_mut(file) {
            trace.learn(record);
        }
    }

    fn restart(&mut self) {
        self.traces.clear();
    }
}

/// The store with which a trace is decoded: it knows the schemas of `initial`, and all schemas that
/// the trace defines.
///
/// # Errors
/// When a record cannot be read.
pub fn read<S: Source>(
    records: &mut Records<S>,
    initial: SchemaStore,
) -> etl_format::Result<SchemaStore> {
    let mut ahead = SchemasAhead::new(initial);
    while let Some(record) = records.next_record()? {
        ahead.learn(&record);
    }
    Ok(ahead.into_store())
}
