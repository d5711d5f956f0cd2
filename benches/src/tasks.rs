//! What is measured in a process of its own: one piece of work, and what it took.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::ValueEnum;
use etl_format::read::{FileOrder, FileSource, Options, Record, Trace};
use etl_format::rewrite::merge::{MergeOptions, merge};
use serde::{Deserialize, Serialize};

use crate::measure::{self, plain_pass};
use crate::writing::Nowhere;
use crate::{PEAK, making};

/// A piece of work on a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
pub enum Task {
    /// Read the bytes and look at each word.
    Plain,
    /// Every record, as the file stands.
    Walk,
    /// Every record, in time order.
    Ordered,
    /// `etlkit info`.
    Info,
    /// `etlkit dump --format jsonl`.
    Json,
    /// `etlkit dump --format csv`.
    Csv,
    /// `etlkit verify`.
    Verify,
    /// The trace merged with itself; the result is thrown away.
    Merge,
    /// `etlkit compress`.
    Compress,
    /// A scenario simulated; the bytes are thrown away.
    Synth,
    /// `etlkit synth`.
    SynthFile,
}

impl Task {
    /// What it is called in the table.
    pub fn name(self) -> &'static str {
        match self {
            Task::Plain => "plain pass over the bytes",
            Task::Walk => "file-order walk",
            Task::Ordered => "ordered walk",
            Task::Info => "`info`",
            Task::Json => "`dump`, JSON lines",
            Task::Csv => "`dump`, CSV",
            Task::Verify => "`verify`",
            Task::Merge => "merge of two",
            Task::Compress => "`compress`",
            Task::Synth => "synth, bytes thrown away",
            Task::SynthFile => "`synth`, to a file",
        }
    }
}

/// What a piece of work took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Took {
    /// Seconds on processors, of all threads, the system's work for them included.
    pub cpu: f64,
    /// Seconds by the clock on the wall.
    pub wall: f64,
    /// Most bytes of the heap at a time.
    pub peak: u64,
}

/// What a process of its own is to do.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The work.
    pub task: Task,
    /// The trace, or the scenario.
    pub input: &'a Path,
    /// Where something is written.
    pub output: Option<PathBuf>,
    /// Threads.
    pub threads: usize,
    /// Settings of the scenario: `name=value`.
    pub set: Vec<String>,
}

impl Job<'_> {
    /// Does it in a new process, several times; the least that it took.
    pub fn measure(&self, runs: usize) -> Took {
        let all = (0..runs.max(1)).map(|_| self.start());
        all.min_by(|a, b| a.cpu.total_cmp(&b.cpu)).expect("one run at least")
    }

    fn start(&self) -> Took {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        let task = self.task.to_possible_value().expect("all tasks have names");
        command.args(["--task", task.get_name(), "--threads", &self.threads.to_string()]);
        command.arg("--input").arg(self.input);
        if let Some(output) = &self.output {
            command.arg("--output").arg(output);
        }
        for set in &self.set {
            command.args(["--set", set]);
        }
        // What is printed goes nowhere: a pipe would measure whoever reads it as well.
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let child = child.expect("this program starts");
        let said = String::from_utf8_lossy(&child.stderr);
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{:?} says: {said}", self.task))
    }

    /// Does it in this process, and says on standard error what it took.
    pub fn run_here(&self) {
        let (cpu, wall) = (measure::process_seconds(), Instant::now());
        PEAK.reset_peak_usage();
        let before = PEAK.current_usage();
        self.work();
        let took = Took {
            cpu: measure::process_seconds() - cpu,
            wall: wall.elapsed().as_secs_f64(),
            peak: PEAK.peak_usage().saturating_sub(before) as u64,
        };
        eprintln!("\n{}", serde_json::to_string(&took).expect("numbers"));
    }

    fn work(&self) {
        let threads = self.threads.to_string();
        let tool = |args: &[&str]| {
            let mut all: Vec<OsString> = vec!["etlkit".into()];
            all.extend(args.iter().map(OsString::from));
            all.push(self.input.into());
            if let Some(output) = &self.output {
                all.extend(["-o".into(), output.into(), "--force".into()]);
            }
            for set in &self.set {
                all.extend(["--set".into(), set.into()]);
            }
            // Findings are no failure of the measurement; what cannot be read says so by its time.
            let _ = etlkit::run(all);
        };
        match self.task {
            Task::Plain => {
                std::hint::black_box(plain_pass(self.input));
            }
            Task::Walk => self.walk(),
            Task::Ordered => self.ordered(),
            Task::Info => tool(&["info", "--format", "json", "--threads", &threads]),
            Task::Json => tool(&["dump", "--format", "jsonl", "--threads", &threads]),
            Task::Csv => tool(&["dump", "--format", "csv", "--threads", &threads]),
            Task::Verify => tool(&["verify", "--no-config", "--threads", &threads]),
            Task::Merge => self.merge(),
            Task::Compress => tool(&["compress", "--threads", &threads]),
            Task::Synth => {
                std::hint::black_box(making::throw_away(self.input, &self.set));
            }
            Task::SynthFile => tool(&["synth", "--no-truth"]),
        }
    }

    fn source(&self) -> FileSource<File> {
        FileSource::new(File::open(self.input).expect("the trace opens")).expect("it can seek")
    }

    fn walk(&self) {
        let mut sum = 0;
        let mut records =
            FileOrder::open(self.source(), &Options::default()).expect("it is a trace");
        while let Some(record) = records.next_record().expect("it is whole") {
            crate::look(&mut sum, &record);
        }
        std::hint::black_box(sum);
    }

    fn ordered(&self) {
        let mut sum = 0;
        let mut trace = Trace::open(self.source(), &Options::default()).expect("it is a trace");
        let look = |record: Record<'_>| {
            crate::look(&mut sum, &record);
            Ok::<_, etl_format::Error>(())
        };
        let mut records = trace.ordered().expect("it is whole");
        records.with_threads(self.threads, |records| records.for_each(look)).expect("it is whole");
        std::hint::black_box(sum);
    }

    fn merge(&self) {
        let mut options = MergeOptions::default();
        options.read.threads = self.threads;
        let inputs = vec![self.source(), self.source()];
        merge(inputs, Nowhere::default(), &options).expect("they belong together");
    }
}
