//! How fast traces come out: `cargo run --release -p etl-synth --example throughput -- [SCRIPT]
//! [FILE] [NAME=VALUE...]`.
//!
//! Lets a scenario happen (one of its own where none is named) without a truth and writes what its
//! sessions write into FILE, or, without one, counts it and throws it away. Prints bytes, events,
//! processor time and peak memory (as Linux reports them).

use std::fs::{self, File};
use std::io;
use std::time::Instant;

use etl_format::write::Output;
use etl_synth::truth::{BufferReport, Observer, SessionReport};
use etl_synth::{CountingFileSystem, FileSystem, ReadSeek, Script, Simulation};

/// All that is written goes into one file.
struct One(String);

impl FileSystem for One {
    fn create(&mut self, _: &str) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(etl_format::write::File::new(File::create(&self.0)?)))
    }

    fn open(&mut self, _: &str) -> io::Result<Box<dyn ReadSeek>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn truncate(&mut self, _: &str, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn overwrite(&mut self, _: &str, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Sums up the sessions.
#[derive(Default)]
struct Sums {
    recorded: u64,
    lost: u64,
    buffers: u64,
}

impl Observer for Sums {
    fn buffer_changed(&mut self, _: usize, _: &BufferReport) -> etl_synth::Result<()> {
        self.buffers += 1;
        Ok(())
    }

    fn session_ended(&mut self, session: &SessionReport) -> etl_synth::Result<()> {
        self.recorded += session.events_recorded;
        self.lost += session.events_lost;
        Ok(())
    }
}

/// Seconds of processor time of this process, in steps of a hundredth.
fn processor_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let ticks = |text: Option<&str>| text.and_then(|t| t.parse::<f64>().ok());
    Some((ticks(fields.next())? + ticks(fields.next())?) / 100.0)
}

/// The most memory that this process had at a time, in MB.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

/// What happens where no script is named: half a million events, more or less.
const OWN: &str = r#"
process "Shop.exe" threads=8 {
    clr "core" { assembly "Shop" { module "C:\\Shop\\Shop.dll" { methods 100 ready=50 } } }
    every "100us" from="1s" until="21s" { contend 1 }
}
at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords="Contention" level=5 } }
at "22s" { stop "clr" }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let mut args = std::env::args().skip(1).filter(|_| !cfg!(test));
    let (name, script) = match args.next() {
        Some(path) => (path.clone(), fs::read_to_string(path)?),
        None => ("threads that wait".to_owned(), OWN.to_owned()),
    };
    let (mut path, mut set) = (None, Vec::new());
    for arg in args {
        match arg.split_once('=') {
            Some((name, value)) => set.push((name.to_owned(), value.to_owned())),
            None => path = Some(arg),
        }
    }
    let scenario = Script::new(&name, &script).parameters(set).parse()?;
    let mut store =
        path.map_or_else(CountingFileSystem::default, |path| CountingFileSystem::new(One(path)));
    let mut sums = Sums::default();
    let begin = Instant::now();
    Simulation::new(&scenario).observer(&mut sums).run(&mut store)?;
    let wall = begin.elapsed().as_secs_f64();
    let written = store.bytes() as f64 / 1e6;
    println!(
        "{written:.0} MB, {} events, {} lost, {} buffers",
        sums.recorded, sums.lost, sums.buffers
    );
    let seconds = processor_time().unwrap_or(wall);
    println!(
        "{seconds:.2} s of processor time ({wall:.2} s by the clock): {:.0} MB/s",
        written / seconds
    );
    if let Some(peak) = peak_memory() {
        println!("{peak:.1} MB of memory at most");
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
