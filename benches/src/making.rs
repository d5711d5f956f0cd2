//! Simulating, with what comes out counted and thrown away.

use std::path::Path;

use etl_synth::scenario::{Settings, parse_with};
use etl_synth::truth::Witness;
use etl_synth::{Counted, SessionReport, simulate};

/// Sums up the events of the sessions.
#[derive(Default)]
struct Recorded(u64);

impl Witness for Recorded {
    fn session(&mut self, session: &SessionReport) -> etl_synth::Result<()> {
        self.0 += session.recorded;
        Ok(())
    }
}

/// Lets a scenario happen; the bytes and the events that its sessions record.
pub fn throw_away(script: &Path, set: &[String]) -> (u64, u64) {
    let text = std::fs::read_to_string(script).expect("the scenario is readable");
    let split = |set: &String| {
        let (name, value) = set.split_once('=').expect("NAME=VALUE");
        (name.to_owned(), value.to_owned())
    };
    let set: Vec<_> = set.iter().map(split).collect();
    let include = |name: &str| Err(format!("{name}: nothing is included here"));
    let settings = Settings { set: &set, seed: None, include: &include };
    let scenario = parse_with("scenario", &text, settings).expect("the scenario is sound");
    let (mut store, mut sums) = (Counted::default(), Recorded::default());
    simulate(&scenario, &mut store, &mut sums).expect("the scenario can happen");
    (store.bytes(), sums.0)
}
