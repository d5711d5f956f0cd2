//! A trace whose tables are made, with the machine that its rows refer to.

use etl_analysis::profile::Intervals;
use etl_analysis::{Analysis, Machine, RecordObserver, Recording};
use etl_events::context::Context;
use etl_events::schemas::SchemasOfTraces;
use etl_format::Ticks;
use etl_format::read::{Damage, Record, Source, Trace};

use crate::options::Options;
use crate::{Error, Result, events};

/// The result of a pass over the whole trace before the rows are made.
#[derive(Debug)]
pub(crate) struct Before {
    pub machine: Machine,
    pub intervals: Intervals,
    /// Whether the machine has the names of code as well.
    code: bool,
}

/// The parts of a pass before the rows of events that these rows need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Names of processes and threads.
    pub names: bool,
    /// Schemas that the trace defines after the events.
    pub schemas: bool,
}

impl Needs {
    pub const ALL: Self = Needs {
        names: true,
        schemas: true,
    };
}

/// A trace whose tables are made.
#[derive(Debug)]
pub(crate) struct Recorded<S: Source> {
    source: S,
    pub options: Options,
    before: Option<Before>,
    /// What the passes over the trace could not read.
    damage: Vec<Damage>,
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

    fn other(&mut self, record: &Record<'_>, time: Ticks) {
        self.intervals.record(record, time);
    }

    fn restart(&mut self) {
        self.intervals = Intervals::default();
        self.schemas.restart();
    }
}

/// A trace after a pass for the names of code.
pub(crate) struct WithCode<'r, S> {
    pub source: &'r mut S,
    pub options: &'r Options,
    pub before: &'r Before,
}

impl<S: Source> Recorded<S> {
    pub fn open(mut source: S, options: Options) -> Result<Self> {
        open_trace(&mut source, &options)?;
        Ok(Recorded {
            source,
            options,
            before: None,
            damage: Vec::new(),
        })
    }

    /// What could not be read of the trace, once a table was written.
    pub fn into_damage(self) -> Vec<Damage> {
        self.damage
    }

    fn read_before(&mut self, code: bool) -> Result<()> {
        if let Some(before) = &self.before
            && (before.code || !code)
        {
            return Ok(());
        }
        let Options {
            limits,
            threads,
            ref trace,
            ref store,
            ..
        } = self.options;
        let mut recording = Recording::open_within([(&mut self.source, trace.clone())], limits)?;
        let analysis = Analysis::new().without_addresses().threads(threads);
        let schemas = SchemasOfTraces::new(store.clone());
        let mut records = ReadBefore {
            intervals: Intervals::default(),
            schemas,
        };
        let machine = if code {
            analysis
                .with_names()
                .run_split(&mut recording, &mut records, &mut ())?
        } else {
            analysis.run_for_owners(&mut recording, &mut records)?
        };
        let ReadBefore { intervals, schemas } = records;
        self.options.store = schemas.store(0);
        self.damage = machine
            .files()
            .iter()
            .flat_map(|file| &file.damage)
            .map(|range| range.damage.clone())
            .collect();
        self.before = Some(Before {
            machine,
            intervals,
            code,
        });
        Ok(())
    }

    /// Reads the whole trace, with the names of code.
    pub fn with_code(&mut self) -> Result<WithCode<'_, S>> {
        self.read_before(true)?;
        match &self.before {
            Some(before) => Ok(WithCode {
                source: &mut self.source,
                options: &self.options,
                before,
            }),
            None => Err(Error::Stopped),
        }
    }

    /// Runs a function over the records, after a pass for the names and schemas that it needs.
    pub fn for_events<T>(
        &mut self,
        needs: Needs,
        run: impl FnOnce(
            &mut etl_format::read::Records<&mut &mut S>,
            Option<&Context<'_>>,
            &Options,
        ) -> Result<T>,
    ) -> Result<T> {
        let needs_names = needs.names && self.options.names;
        if needs.schemas || needs_names {
            self.read_before(false)?;
        }
        let Recorded {
            source,
            options,
            before,
            damage,
        } = self;
        let machine = before.as_ref().map(|before| &before.machine);
        let context = match machine {
            Some(machine) if needs_names => Some(Context::new(machine)),
            _ => None,
        };
        let is_ordered = machine.is_some_and(|machine| machine.is_ordered());
        let mut trace = open_trace(source, options)?;
        let mut records = events::records(&mut trace, is_ordered, options.threads)?;
        let result = run(&mut records, context.as_ref(), options)?;
        *damage = records.damage().to_vec();
        Ok(result)
    }
}

/// Opens a trace; damaged regions are skipped.
pub(crate) fn open_trace<S: Source>(source: S, options: &Options) -> Result<Trace<S>> {
    let salvage = etl_format::read::Options {
        limits: options.limits,
        threads: options.threads,
        ..etl_format::read::Options::salvage()
    };
    Ok(Trace::open(source, &salvage)?)
}
