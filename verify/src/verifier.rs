//! Reads files, applies the rules, and makes the report.

use std::cmp::Reverse;
use std::fmt;

use etl_analysis::{Analysis, ProcessSelector, Recording};
use etl_format::read::{Limits, Source};
use etl_schema::tables::TableSet;

use crate::Result;
use crate::checks::enablement::{Declaration, Enabled};
use crate::checks::{Facts, RecordChecks, RecordedBy, StackChecks};
use crate::locate::locate;
use crate::policy::Policy;
use crate::report::Report;
use crate::rules::{Check, TraceOrigin};

/// Verifies traces.
///
/// ```no_run
/// use etl_format::read::FileSource;
/// use etl_verify::{Enabled, Verifier};
///
/// let trace = FileSource::new(std::fs::File::open("app.etl")?)?;
/// let mut read = 0;
/// let report = Verifier::new()
///     .threads(2)
///     .enabled(Enabled::parse("runtime:0x1CCBD:5")?)
///     .on_progress(|bytes| read += bytes)
///     .verify(trace, "app.etl")?;
/// println!("{}", report.text());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Verifier<'a> {
    policy: Policy,
    declared: Declaration,
    threads: usize,
    limits: Limits,
    tables: TableSet,
    selector: ProcessSelector,
    stale: bool,
    progress: Option<Box<dyn FnMut(u64) + 'a>>,
}

impl fmt::Debug for Verifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("policy", &self.policy)
            .field("declared", &self.declared)
            .field("threads", &self.threads)
            .field("limits", &self.limits)
            .field("tables", &self.tables)
            .field("selector", &self.selector)
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}

impl<'a> Verifier<'a> {
    /// A verifier with the rules' own severities and one thread.
    #[must_use]
    pub fn new() -> Self {
        Verifier::default()
    }

    /// Sets how severe findings are, and which are left out.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Verifier { policy, ..self }
    }

    /// Adds how sessions enabled providers, which the trace itself seldom records. No other session
    /// enabled these providers, unless [`Verifier::with_other_sessions`] is set: an event that the
    /// enablements do not request is then an error, and so is one that they request and that is
    /// missing.
    #[must_use]
    pub fn enabled(mut self, enabled: impl IntoIterator<Item = Enabled>) -> Self {
        self.declared.enabled.extend(enabled);
        self
    }

    /// States that sessions that are not declared may have enabled the same providers, and made
    /// them raise further events.
    #[must_use]
    pub fn with_other_sessions(mut self) -> Self {
        self.declared.has_other_sessions = true;
        self
    }

    /// Sets the number of threads that read a trace of one file; 0 means 1. The report does not
    /// depend on it.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Verifier { threads, ..self }
    }

    /// Sets the tables that payloads are compared with.
    #[must_use]
    pub fn tables(self, tables: TableSet) -> Self {
        Verifier { tables, ..self }
    }

    /// Limits the memory for the buffers of each file, and the memory of this process.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Verifier { limits, ..self }
    }

    /// Reports on these processes only: their verdict, and findings about them or about the whole
    /// trace. A selector without names selects all.
    #[must_use]
    pub fn processes(self, selector: ProcessSelector) -> Self {
        Verifier { selector, ..self }
    }

    /// Includes stale records, which are left out by default.
    #[must_use]
    pub fn with_stale_records(self) -> Self {
        Verifier {
            stale: true,
            ..self
        }
    }

    /// Calls `progress` now and then, with the bytes of the records that were read since the last
    /// call. Traces whose records are out of order are read twice.
    #[must_use]
    pub fn on_progress(self, progress: impl FnMut(u64) + 'a) -> Self {
        Verifier {
            progress: Some(Box::new(progress)),
            ..self
        }
    }

    /// Verifies a trace. The report and errors name it `name`. Damage is a finding, not an error.
    ///
    /// ```
    /// use etl_verify::Verifier;
    ///
    /// # let trace = etl_schema::testing::snapshot::example();
    /// // `trace` has the bytes of an `.etl` file.
    /// let report = Verifier::new().verify(trace.as_slice(), "app.etl")?;
    /// assert!(report.verdict.passes(), "{}", report.text());
    ///
    /// let error = Verifier::new().verify(&b"not a trace"[..], "app.etl").unwrap_err();
    /// assert!(error.to_string().contains("app.etl"));
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not a trace or cannot be read, or a selected process is not in the trace.
    pub fn verify<S: Source>(&mut self, source: S, name: &str) -> Result<Report> {
        self.verify_together([(source, name)])
    }

    /// Verifies several files as one recording, in time order: for example the files of the runtime
    /// and the rundown session before they are merged. Each file comes with its name.
    ///
    /// ```no_run
    /// use etl_verify::Verifier;
    ///
    /// let runtime = std::fs::read("clr1.etl")?;
    /// let rundown = std::fs::read("clr2.etl")?;
    /// let files = [(runtime.as_slice(), "clr1.etl"), (rundown.as_slice(), "clr2.etl")];
    /// let report = Verifier::new().verify_together(files)?;
    /// assert_eq!(report.file, "clr1.etl + clr2.etl");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub fn verify_together<S: Source, N: Into<String>>(
        &mut self,
        files: impl IntoIterator<Item = (S, N)>,
    ) -> Result<Report> {
        let mut recording = Recording::open_within(files, self.limits)?;
        let clock = recording.timeline().clock();
        let headers = recording.files().iter().map(|file| file.trace.header());
        let origin = TraceOrigin::of(headers);
        let progress: Option<&mut dyn FnMut(u64)> = match &mut self.progress {
            Some(progress) => Some(&mut **progress),
            None => None,
        };
        let recorded_by = RecordedBy {
            clock: &clock,
            origin,
        };
        let mut records = RecordChecks::new(&self.declared, recorded_by, self.tables, progress);
        let mut stacks = StackChecks::new(self.tables);
        let mut analysis = Analysis::new().threads(self.threads);
        if self.stale {
            analysis = analysis.with_stale_records();
        }
        let machine = analysis.run_split(&mut recording, &mut records, &mut stacks)?;
        let facts = Facts::new(machine, records, stacks);
        let selected = if self.selector.is_empty() {
            None
        } else {
            let selector = self
                .selector
                .clone()
                .find_others(&facts.machine, &mut recording)?;
            Some(selector.select(&facts.machine)?)
        };
        let mut findings = Check::all(&facts, self.policy.gates(), || recording.check_memory())?;
        if let Some(selected) = &selected {
            findings.retain(|f| f.process.is_none_or(|process| selected.contains(&process)));
        }
        let left_out = self.policy.apply(&mut findings);
        findings.sort_by_key(|f| (Reverse(f.severity), f.outcome, f.time, f.pid, f.rule));
        locate(&mut recording, &facts, &mut findings)?;
        Ok(Report::new(&facts, findings, left_out, selected.as_ref()))
    }
}
