//! An opened trace.

use etl_format::read::{Damage, Note, OrderCheck};
use etl_format::{Clock, FileTime};

use super::events::Events;
use super::files::Files;
use crate::Result;
use crate::eventpipe::ConversionReport;
use crate::input::AnySource;
use crate::survey::Survey;

/// The bytes of a file of a trace.
#[derive(Debug)]
#[non_exhaustive]
pub struct NamedSource<'t> {
    /// The name of the file; empty for bytes and pipes.
    pub name: String,
    /// How the file was converted, if it is an EventPipe stream.
    pub conversion: Option<ConversionReport>,
    /// The bytes.
    pub source: AnySource<'t>,
}

/// An opened trace: one file, or several files as one recording.
///
/// ```
/// # use etl_events::testing::trace;
/// let mut trace = etl_events::from_bytes(trace())?;
/// let mut events = trace.events();
/// let mut count = 0;
/// while let Some(event) = events.next()? {
///     count += 1;
/// }
/// assert_eq!(count, 5);
/// # Ok::<(), etl_events::Error>(())
/// ```
#[derive(Debug)]
pub struct Trace {
    files: Files,
}

impl Trace {
    pub(super) fn new(files: Files) -> Self {
        Trace { files }
    }

    /// Its events in time order; the methods of [`Events`] choose which.
    pub fn events(&mut self) -> Events<'_> {
        Events::new(&mut self.files)
    }

    /// The summary of each file, as `etlkit info` shows it. Reads each file once.
    ///
    /// # Errors
    /// When a file cannot be read.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let summaries = trace.summaries()?;
    /// assert_eq!(summaries[0].records, 5);
    /// let runtime = &summaries[0].providers[0];
    /// assert_eq!(runtime.provider.as_deref(), Some("Microsoft-Windows-DotNETRuntime"));
    /// assert_eq!(runtime.count, 2);
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    pub fn summaries(&mut self) -> Result<Vec<Survey>> {
        let Files {
            files, settings, ..
        } = &mut self.files;
        let options = settings.options(OrderCheck::Lookahead);
        let mut summaries = Vec::new();
        for file in files {
            let mut trace = file.input.trace(&options)?;
            summaries.push(Survey::of(&mut trace, settings.store.clone(), |_| {})?);
        }
        Ok(summaries)
    }

    /// The bytes of the files, unpacked, with their names: for a verifier, an analysis, or another
    /// reader of the same files.
    ///
    /// ```
    /// use etl_analysis::{Analysis, Recording};
    ///
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut files = Vec::new();
    /// for file in trace.sources() {
    ///     files.push((file.source, file.name));
    /// }
    /// let machine = Analysis::new().run(&mut Recording::open(files)?, &mut ())?;
    /// assert_eq!(machine.processes().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sources(&mut self) -> Vec<NamedSource<'_>> {
        let mut sources = Vec::new();
        for file in &mut self.files.files {
            sources.push(NamedSource {
                name: file.name.clone(),
                conversion: file.input.head().conversion.clone(),
                source: file.input.source(),
            });
        }
        sources
    }

    /// The names of the files; empty names for bytes and pipes.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.files.iter().map(|file| file.name.as_str())
    }

    /// The clock of the times. It starts with the file that began first.
    ///
    /// ```
    /// # let trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// assert_eq!(trace.clock().ticks_at(trace.start_time()).get(), 1_000);
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.files.timeline.clock()
    }

    /// When the session started.
    #[must_use]
    pub fn start_time(&self) -> FileTime {
        self.clock().start_time
    }

    /// The damaged regions, found by the last pass over the events that reached the end.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// let mut events = trace.events();
    /// while events.next()?.is_some() {}
    /// drop(events);
    /// assert!(trace.damage().is_empty());
    /// # Ok::<(), etl_events::Error>(())
    /// ```
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.files.damage
    }

    /// Remarks on the files, such as lost events, found by the last pass over the events that
    /// reached the end.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.files.notes
    }
}
