//! The traces of a simulation, independent of their names.

use etl_format::constants::LogFileMode;
use etl_synth::Result;
use etl_synth::truth::{Fact, Observer};

/// Passes every fact on, and keeps the names of the traces.
pub(super) struct Traces<'a> {
    observer: &'a mut dyn Observer,
    /// The names of the traces of each recording: the parts of a session, or the inputs of a merge.
    recordings: Vec<Vec<String>>,
}

impl<'a> Traces<'a> {
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Traces {
            observer,
            recordings: Vec::new(),
        }
    }

    /// The names of the traces of each recording.
    pub fn into_recordings(self) -> Vec<Vec<String>> {
        self.recordings
    }

    fn add(&mut self, name: &str) {
        if !self.recordings.iter().flatten().any(|trace| trace == name) {
            self.recordings.push(vec![name.to_owned()]);
        }
    }

    /// Joins the recordings that contain these traces, at the place of the first.
    fn join(&mut self, names: &[String]) {
        let mut joined: Option<usize> = None;
        let mut recordings: Vec<Vec<String>> = Vec::new();
        for recording in self.recordings.drain(..) {
            let is_joined = recording.iter().any(|name| names.contains(name));
            match joined.and_then(|index| recordings.get_mut(index)) {
                Some(first) if is_joined => first.extend(recording),
                _ => {
                    if is_joined {
                        joined = Some(recordings.len());
                    }
                    recordings.push(recording);
                }
            }
        }
        self.recordings = recordings;
    }
}

impl Observer for Traces<'_> {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        match fact {
            Fact::SessionEnded(report) => {
                report.all_files.iter().for_each(|name| self.add(name));
                // Several files from memory have the same events.
                if report.plan.mode.has(LogFileMode::NEWFILE) {
                    self.join(&report.all_files);
                }
            }
            Fact::Merged { output, inputs, .. } => {
                self.join(inputs);
                self.add(output);
            }
            _ => {}
        }
        self.observer.observe(fact)
    }
}
