//! Simulating, with what comes out counted and thrown away.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;

use etl_format::write::Medium;
use etl_synth::scenario::{Settings, parse_with};
use etl_synth::truth::{Present, Witness};
use etl_synth::{BufferReport, Raised, Reading, SessionReport, Store, simulate};

/// Counts what is written.
struct Counting(Rc<Cell<u64>>);

impl Medium for Counting {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        std::hint::black_box(bytes);
        self.0.set(self.0.get().max(at + bytes.len() as u64));
        Ok(())
    }

    fn can_go_back(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

struct Out(Rc<Cell<u64>>);

impl Store for Out {
    fn create(&mut self, _: &str) -> io::Result<Box<dyn Medium>> {
        Ok(Box::new(Counting(Rc::clone(&self.0))))
    }

    fn open(&mut self, _: &str) -> io::Result<Box<dyn Reading>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn cut(&mut self, _: &str, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn overwrite(&mut self, _: &str, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Sums up the events of the sessions.
#[derive(Default)]
struct Recorded(u64);

impl Witness for Recorded {
    fn event(&mut self, _: &Raised<'_>) -> etl_synth::Result<()> {
        Ok(())
    }

    fn session_started(&mut self, _: usize, _: &str, _: Option<&str>) -> etl_synth::Result<()> {
        Ok(())
    }

    fn buffer(&mut self, _: usize, _: &BufferReport) -> etl_synth::Result<()> {
        Ok(())
    }

    fn session(&mut self, session: &SessionReport) -> etl_synth::Result<()> {
        self.0 += session.recorded;
        Ok(())
    }

    fn merged(&mut self, _: &str, _: &[String]) -> etl_synth::Result<()> {
        Ok(())
    }

    fn present(&mut self, _: &Present<'_>) -> etl_synth::Result<()> {
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
    let (end, mut sums) = (Rc::new(Cell::new(0)), Recorded::default());
    simulate(&scenario, &mut Out(Rc::clone(&end)), &mut sums).expect("the scenario can happen");
    (end.get(), sums.0)
}
