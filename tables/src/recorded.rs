//! A trace whose tables are made, and what all of its rows need to know.

use etl_analysis::profile::Intervals;
use etl_analysis::{Analysis, Machine, RecordObserver, Recording};
use etl_events::context::Context;
use etl_events::schemas::SchemasOfTraces;
use etl_format::Ticks;
use etl_format::read::{Damage, Record, Source, Trace};

use crate::options::Options;
use crate::{Error, Result, events};

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
        if self
            .before
            .as_ref()
            .is_some_and(|before| before.code || !code)
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
        let analysis = Analysis::new().addresses(false).threads(threads);
        let schemas = SchemasOfTraces::new(store.clone());
        let mut records = ReadBefore {
            intervals: Intervals::default(),
            schemas,
        };
        let machine = if code {
            analysis
                .names(true)
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

    /// What the whole trace shows, names of code included.
    pub fn with_code(&mut self) -> Result<(&mut S, &Options, &Before)> {
        self.read_before(true)?;
        let Recorded {
            source,
            options,
            before,
            ..
        } = self;
        match before {
            Some(before) => Ok((source, options, before)),
            None => Err(Error::Stopped),
        }
    }

    /// Runs something over the records with what they need to know.
    pub fn for_events<T>(
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
        let Recorded {
            source,
            options,
            before,
            damage,
        } = self;
        let machine = before.as_ref().map(|before| &before.machine);
        let context = machine.filter(|_| names && options.names).map(Context::new);
        let is_ordered = machine.is_some_and(|machine| machine.is_ordered());
        let mut trace = open_trace(source, options)?;
        let mut records = events::records(&mut trace, is_ordered, options.threads)?;
        let result = run(&mut records, context.as_ref(), options)?;
        *damage = records.damage().to_vec();
        Ok(result)
    }
}

/// Opens a trace such that damage does not end the reading.
pub(crate) fn open_trace<S: Source>(source: S, options: &Options) -> Result<Trace<S>> {
    let salvage = etl_format::read::Options {
        limits: options.limits,
        threads: options.threads,
        ..etl_format::read::Options::salvage()
    };
    Ok(Trace::open(source, &salvage)?)
}
