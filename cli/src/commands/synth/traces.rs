//! The traces of a simulation, whatever their names are.

use etl_format::constants::LogFileMode;
use etl_synth::Result;
use etl_synth::truth::{Fact, Observer};

/// Hands every fact on, and keeps the names of the traces.
pub(super) struct Traces<'a> {
    observer: &'a mut dyn Observer,
    /// Those of one recording together: the parts of a session, and the inputs of a merge.
    recordings: Vec<Vec<String>>,
}

impl<'a> Traces<'a> {
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Traces {
            observer,
            recordings: Vec::new(),
        }
    }

    /// Their names, those of each recording together.
    pub fn into_recordings(self) -> Vec<Vec<String>> {
        self.recordings
    }

    fn add(&mut self, name: &str) {
        if !self.recordings.iter().flatten().any(|known| known == name) {
            self.recordings.push(vec![name.to_owned()]);
        }
    }

    /// Makes one recording of those with these traces, in place of the first.
    fn join(&mut self, names: &[String]) {
        let is_of = |recording: &Vec<String>| recording.iter().any(|name| names.contains(name));
        let Some(first) = self.recordings.iter().position(is_of) else {
            return;
        };
        let joined: Vec<_> = self
            .recordings
            .extract_if(first.., |r| is_of(r))
            .flatten()
            .collect();
        self.recordings.insert(first, joined);
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
