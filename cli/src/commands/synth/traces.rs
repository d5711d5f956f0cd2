//! The traces of a simulation, whatever their names are.

use etl_synth::Result;
use etl_synth::truth::{Fact, Observer};

/// Hands every fact on, and keeps the names of the traces.
pub(super) struct Traces<'a> {
    observer: &'a mut dyn Observer,
    names: Vec<String>,
}

impl<'a> Traces<'a> {
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Traces { observer, names: Vec::new() }
    }

    /// Their names, those of a session one after the other.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }

    fn add(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}

impl Observer for Traces<'_> {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        match fact {
            Fact::SessionEnded(report) => report.all_files.iter().for_each(|name| self.add(name)),
            Fact::Merged { output, .. } => self.add(output),
            _ => {}
        }
        self.observer.observe(fact)
    }
}
