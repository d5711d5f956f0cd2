//! Makes the tables of one trace: first what all rows need to know, then the rows.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etl_analysis::files::Fault;
use etl_analysis::profile::Intervals;
use etl_analysis::{Analysis, Machine, RecordObserver, Recording};
use etl_events::context::Context;
use etl_events::schemas::SchemasOfTraces;
use etl_format::read::{Record, Source};

use crate::column::{Slot, schema_of};
use crate::options::Options;
use crate::reader::open_trace;
use crate::tables::{EVENTS, Table};
use crate::typed::{TypedTable, TypedTables};
use crate::{Error, Result, events, facts, typed};

/// A table, and the columns of it that are wanted.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Events(SchemaRef),
    Facts(&'static Table, SchemaRef),
    Typed(TypedTables, SchemaRef),
}

impl Plan {
    pub fn schema(&self) -> SchemaRef {
        match self {
            Plan::Events(schema) | Plan::Facts(_, schema) | Plan::Typed(_, schema) => {
                schema.clone()
            }
        }
    }
}

/// What a pass over the whole trace showed.
#[derive(Debug)]
pub(crate) struct Before {
    pub machine: Machine,
    pub intervals: Intervals,
    /// Whether it has the names of code as well.
    code: bool,
}

/// A trace whose tables are made.
#[derive(Debug)]
pub(crate) struct Recorded<S: Source> {
    source: S,
    pub options: Options,
    before: Option<Before>,
    /// What the passes over the trace could not read.
    faults: Vec<Fault>,
}

/// Finds the intervals of samples, and the schemas.
#[derive(Debug)]
struct ReadBefore {
    intervals: Intervals,
    schemas: SchemasOfTraces,
}

impl RecordObserver for ReadBefore {
    #[inline]
    fn record(&mut self, record: &Record<'_>, file: usize) {
        self.schemas.record(record, file);
    }

    fn other(&mut self, record: &Record<'_>, time: i64) {
        self.intervals.record(record, time);
    }

    fn restart(&mut self) {
        self.intervals = Intervals::default();
        self.schemas.restart();
    }
}

impl<S: Source> Recorded<S> {
    pub fn open(mut source: S, options: Options) -> Result<Self> {
        open_trace(&mut source, &options)?;
        Ok(Recorded { source, options, before: None, faults: Vec::new() })
    }

    /// What could not be read of the trace, once a table was written.
    pub fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    fn read_before(&mut self, code: bool) -> Result<()> {
        if self.before.as_ref().is_some_and(|before| before.code || !code) {
            return Ok(());
        }
        let Options { limits, threads, ref trace, ref store, .. } = self.options;
        let mut recording = Recording::open_within([(&mut self.source, trace.clone())], limits)?;
        let analysis = Analysis::new().addresses(false).threads(threads);
        let schemas = SchemasOfTraces::new(store.clone());
        let mut records = ReadBefore { intervals: Intervals::default(), schemas };
        let machine = if code {
            analysis.names(true).run_split(&mut recording, &mut records, &mut ())?
        } else {
            analysis.run_for_owners(&mut recording, &mut records)?
        };
        let ReadBefore { intervals, schemas } = records;
        self.options.store = schemas.store(0);
        self.faults = machine.files().iter().flat_map(|file| file.faults.clone()).collect();
        self.before = Some(Before { machine, intervals, code });
        Ok(())
    }

    /// What the whole trace shows, names of code included.
    pub fn with_code(&mut self) -> Result<(&mut S, &Options, &Before)> {
        self.read_before(true)?;
        let Recorded { source, options, before, .. } = self;
        match before {
            Some(before) => Ok((source, options, before)),
            None => Err(Error::Stopped),
        }
    }

    /// The columns of a table that are wanted.
    pub fn plan(&mut self, name: &str) -> Result<Plan> {
        if name == EVENTS.name {
            return Ok(Plan::Events(events::builder(&self.options)?.schema().clone()));
        }
        if let Some(table) = Table::named(name) {
            let wanted = self.options.wanted(table.name, table.columns)?;
            let columns = wanted.iter().filter_map(|&at| table.columns.get(at));
            let slots: Vec<Slot> = columns.map(Slot::from).collect();
            return Ok(Plan::Facts(table, schema_of(&slots)));
        }
        if !name.contains('.') {
            return Err(Error::NoTable(name.to_owned()));
        }
        let mut tables = self.typed()?;
        tables.retain(|known, _| known.eq_ignore_ascii_case(name));
        let table = tables.values().next().ok_or_else(|| Error::NoEvent(name.to_owned()))?;
        let wanted = self.options.places(&table.name, &table.slots)?;
        let schema = schema_of(wanted.iter().filter_map(|&at| table.slots.get(at)));
        Ok(Plan::Typed(tables, schema))
    }

    /// The tables of all kinds of events that are selected.
    pub fn typed(&mut self) -> Result<TypedTables> {
        self.for_events(true, true, |records, context, options| {
            typed::tables_of(records, context, options)
        })
    }

    /// Runs something over the records with what they need to know.
    fn for_events<T>(
        &mut self,
        names: bool,
        schemas: bool,
        run: impl FnOnce(
            &mut etl_format::read::Records<&mut &mut S>,
            Option<&Context<'_>>,
            &Options,
        ) -> Result<T>,
    ) -> Result<T> {
        if schemas || names && self.options.names {
            self.read_before(false)?;
        }
        let Recorded { source, options, before, faults } = self;
        let machine = before.as_ref().map(|before| &before.machine);
        let context = machine.filter(|_| names && options.names).map(Context::new);
        let is_ordered = machine.is_some_and(|machine| machine.is_ordered());
        let mut trace = open_trace(source, options)?;
        let mut records = events::records(&mut trace, is_ordered, options.threads)?;
        let result = run(&mut records, context.as_ref(), options)?;
        *faults = records.damage().iter().map(Fault::from).collect();
        Ok(result)
    }

    /// Passes the batches of a table to `out`.
    pub fn write(
        &mut self,
        plan: &Plan,
        out: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        match plan {
            Plan::Events(_) => self.write_events(out),
            Plan::Facts(table, _) => self.write_facts(&[table], &mut |_, batch| out(batch)),
            Plan::Typed(tables, _) => self.write_typed(tables, &mut |_, batch| out(batch)),
        }
    }

    /// Passes the batches of `events` to `out`.
    pub fn write_events(&mut self, out: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let builder = events::builder(&self.options)?;
        let names = events::needs_names(&builder, &self.options);
        let schemas = events::needs_schemas(&builder, &self.options);
        self.for_events(names, schemas, |records, context, options| {
            events::write(records, context, options, out)
        })
    }

    /// Passes the batches of the tables of events of one kind to `out`.
    pub fn write_typed(
        &mut self,
        tables: &TypedTables,
        out: &mut dyn FnMut(&TypedTable, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.for_events(true, true, |records, context, options| {
            typed::write(records, context, (tables, options), out)
        })
    }

    /// Passes the batches of tables about the machine to `out`.
    pub fn write_facts(
        &mut self,
        tables: &[&'static Table],
        out: &mut dyn FnMut(&'static Table, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        facts::write(self, tables, out)
    }
}
