//! Prints the processes of a recording and its most frequent places, by samples and by stacks of
//! other events.
//!
//! `cargo run --release -p etl-analysis --example machine [-- trace.etl...]`: several files are
//! read as one recording. Without a file, a trace of its own.

mod input;

use etl_format::Ticks;
use std::collections::BTreeMap;

use etl_analysis::{Analysis, Frames, Machine, Observer, ProcessIndex, Recording, Sample, Stack};

/// Process, innermost address and time, and how often they came: names are known at the end.
type Places = BTreeMap<(ProcessIndex, u64, Ticks), u64>;

#[derive(Default)]
struct Counts {
    samples: Places,
    stacks: Places,
    sampled_stacks: u64,
    partial: u64,
    frames: u64,
}

impl Counts {
    fn add(&mut self, frames: Frames<'_>) {
        self.partial += u64::from(frames.is_partial);
        self.frames += frames.iter().count() as u64;
    }
}

impl Observer for Counts {
    fn sample(&mut self, _: &Machine, sample: &Sample<'_>) {
        if let Some(process) = sample.event.process {
            *self
                .samples
                .entry((process, sample.address, sample.event.time))
                .or_default() += 1;
        }
        self.sampled_stacks += u64::from(!sample.frames.is_empty());
        self.add(sample.frames);
    }

    fn stack(&mut self, _: &Machine, stack: &Stack<'_>) {
        if let (Some(process), Some(inner)) = (stack.event.process, stack.frames.iter().next()) {
            *self
                .stacks
                .entry((process, inner, stack.event.time))
                .or_default() += 1;
        }
        self.add(stack.frames);
    }

    fn restart(&mut self) {
        *self = Counts::default();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Under test the command line is the test runner's.
    let paths: Vec<_> = std::env::args_os()
        .skip(1)
        .filter(|_| !cfg!(test))
        .collect();
    let mut files = Vec::new();
    for path in &paths {
        files.push((std::fs::read(path)?, path.to_string_lossy().into_owned()));
    }
    if files.is_empty() {
        files.push((input::trace(8)?, "an own trace".to_owned()));
    }
    let sources = files
        .iter()
        .map(|(bytes, name)| (bytes.as_slice(), name.as_str()));
    let mut recording = Recording::open(sources)?;
    let mut counts = Counts::default();
    let machine = Analysis::new()
        .with_names()
        .run(&mut recording, &mut counts)?;
    processes(&machine);
    println!(
        "{} samples, {} of them with a stack; {} stacks of other events; {} partial; {} frames",
        counts.samples.values().sum::<u64>(),
        counts.sampled_stacks,
        counts.stacks.values().sum::<u64>(),
        counts.partial,
        counts.frames
    );
    println!("samples");
    print(&hottest(&machine, &counts.samples));
    println!("stacks of other events");
    let stacks = hottest(&machine, &counts.stacks);
    print(&stacks);
    if paths.is_empty() {
        let (compare, sort) = (
            "4 Shop.dll!Shop.Program.Compare",
            "4 Shop.dll!Shop.Program.Sort",
        );
        assert_eq!(stacks, [(compare.to_owned(), 6), (sort.to_owned(), 2)]);
    }
    Ok(())
}

fn processes(machine: &Machine) {
    for process in machine.processes() {
        let threads = machine
            .threads()
            .iter()
            .filter(|t| t.pid == process.pid())
            .count();
        let parent = process
            .parent_pid()
            .map_or("?".to_owned(), |pid| pid.to_string());
        println!(
            "{:6} parent {parent:>6} {threads:4} threads {:6} methods {} {} {}",
            process.pid(),
            process.methods(),
            process.user(),
            process.name(),
            process.command_line()
        );
    }
}

/// What was at the addresses, with the process id, and how often; the most frequent first.
fn hottest(machine: &Machine, places: &Places) -> Vec<(String, u64)> {
    let symbols = machine.symbols();
    let mut named: BTreeMap<String, u64> = BTreeMap::new();
    for (&(process, address, time), count) in places {
        let Some(process) = machine.process(process) else {
            continue;
        };
        let symbol = symbols.at(process.pid(), address, time);
        let name = symbol.map_or_else(|| format!("{address:#x}"), |s| s.to_string());
        *named
            .entry(format!("{} {name}", process.pid()))
            .or_default() += count;
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    named
}

fn print(places: &[(String, u64)]) {
    for (place, count) in places.iter().take(20) {
        println!("{count:8} {place}");
    }
}

#[test]
fn runs() {
    main().unwrap();
}
