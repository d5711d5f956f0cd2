//! The scenarios of `corpus/`, simulated once for all tests of a program: the tests of etl-synth
//! and the tests in `tests/`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use etl_format::Guid;
use etl_format::constants::{ClockType, LogFileMode};
use etl_schema::encode::OwnedValue;
use etl_synth::model::{MachinePlan, Scenario};
use etl_synth::truth::{
    BufferOutcome, BufferReport, EventOutcome, Fact, InMemoryTruth, JsonlWriter, KnownCode,
    KnownEvent, KnownFault, KnownIdentity, KnownMerge, Observer, RecordFormat, SessionOutcome,
    SessionReport,
};
use etl_synth::{MemoryFileSystem, Result, SECOND, Script, Simulation};
use etl_test_support::root;

/// A scenario and its outputs.
pub struct Simulated {
    /// The path of the script in `corpus/`, without extension.
    pub name: String,
    pub script: String,
    pub scenario: Scenario,
    /// Traces by name.
    pub traces: BTreeMap<String, Vec<u8>>,
    /// Other files by name: `truth.jsonl`, and the texts of WPP messages.
    pub texts: BTreeMap<String, Vec<u8>>,
    pub truth: Truth,
}

/// The truth, with the final outcome of each buffer.
pub struct Truth {
    pub events: Vec<KnownEvent>,
    pub sessions: Vec<SessionReport>,
    pub merges: Vec<KnownMerge>,
    pub faults: Vec<KnownFault>,
    /// Code that was loaded and unloaded.
    pub code: Vec<KnownCode>,
    /// What exists at the end: a line of JSON for each item.
    pub inventory: Vec<String>,
    /// Images that merges identified, by file, process and first address: signature and age of
    /// their PDB, if they have one.
    pub identities: BTreeMap<(String, u32, u64), Option<(Guid, u32)>>,
    /// Images with version information, by merged file, path, link time and size.
    pub versions: BTreeSet<(String, String, u32, u64)>,
    /// By session and sequence number.
    pub buffers: BTreeMap<(usize, i64), BufferReport>,
    /// Indexes of recorded events in their order, by session and by the processor of the buffer.
    pub recorded: BTreeMap<(usize, u16), Vec<usize>>,
}

/// The scenarios of `corpus/`, without those of its folders.
pub fn corpus() -> &'static [Simulated] {
    static CORPUS: LazyLock<Vec<Simulated>> = LazyLock::new(|| simulate_all(""));
    &CORPUS
}

/// The scenarios of `corpus/rules/`.
pub fn rules() -> &'static [Simulated] {
    static RULES: LazyLock<Vec<Simulated>> = LazyLock::new(|| simulate_all("rules/"));
    &RULES
}

/// Simulates the scripts of a folder, sorted by name, on all processors.
fn simulate_all(folder: &str) -> Vec<Simulated> {
    let entries = std::fs::read_dir(root().join("corpus").join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter_map(|name| Some(format!("{folder}{}", name.strip_suffix(".kdl")?)))
        .collect();
    names.sort();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (script, scenario) = read(name);
                    let simulated = simulate(name, script, scenario);
                    done.lock().unwrap().insert(name, simulated);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

/// The script of a scenario in `corpus/`, as text and parsed.
pub fn read(name: &str) -> (String, Scenario) {
    let path = root().join("corpus").join(format!("{name}.kdl"));
    let text = std::fs::read_to_string(&path).unwrap();
    let include = |file: &str| std::fs::read_to_string(path.parent().unwrap().join(file));
    let scenario = Script::new(&path.display().to_string(), &text)
        .include(&include)
        .parse();
    let scenario = scenario.unwrap_or_else(|e| panic!("{name}: {e}"));
    (text, scenario)
}

/// Simulates a scenario.
pub fn simulate(name: &str, script: String, scenario: Scenario) -> Simulated {
    let mut files = MemoryFileSystem::default();
    let mut both = Both(InMemoryTruth::default(), JsonlWriter::new(Vec::new()));
    let done = Simulation::new(&scenario)
        .observer(&mut both)
        .run(&mut files);
    done.unwrap_or_else(|e| panic!("{name}: {e}"));
    let Both(truth, jsonl) = both;
    let is_trace = |(name, _): &(String, Vec<u8>)| name.ends_with(".etl");
    let files = files
        .into_files()
        .into_iter()
        .map(|file| (file.name, file.bytes));
    let (traces, texts): (Vec<_>, Vec<_>) = files.partition(is_trace);
    let truth_file = ("truth.jsonl".to_owned(), jsonl.into_inner());
    Simulated {
        name: name.to_owned(),
        script,
        scenario,
        traces: traces.into_iter().collect(),
        texts: texts.into_iter().chain([truth_file]).collect(),
        truth: Truth::new(name, truth),
    }
}

/// Both forms of the truth.
struct Both(InMemoryTruth, JsonlWriter<Vec<u8>>);

impl Observer for Both {
    fn observe(&mut self, fact: &Fact<'_>) -> Result<()> {
        self.0.observe(fact)?;
        self.1.observe(fact)
    }
}

impl Truth {
    fn new(name: &str, truth: InMemoryTruth) -> Self {
        let modes: BTreeMap<usize, LogFileMode> = truth
            .sessions
            .iter()
            .map(|s| (s.index, s.plan.mode))
            .collect();
        let mut recorded: BTreeMap<(usize, u16), Vec<usize>> = BTreeMap::new();
        for (at, event) in truth.events.iter().enumerate() {
            assert_eq!(event.number, at as u64, "{name}");
            for SessionOutcome {
                session, outcome, ..
            } in &event.outcomes
            {
                if *outcome == EventOutcome::Recorded {
                    let one = modes[session].has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
                    let lane = if one { 0 } else { event.processor };
                    recorded.entry((*session, lane)).or_default().push(at);
                }
            }
        }
        // Processors are simulated one after the other; a buffer of all of them is in time order.
        for events in recorded.values_mut() {
            events.sort_by_key(|at| truth.events[*at].at);
        }
        // The last report on a buffer is its outcome.
        let buffers = truth
            .buffers
            .into_iter()
            .map(|buffer| ((buffer.session, buffer.report.sequence), buffer.report))
            .collect();
        let InMemoryTruth {
            events,
            sessions,
            merges,
            faults,
            code,
            inventory,
            identities,
            ..
        } = truth;
        let versioned = identities
            .iter()
            .filter(|known| known.image.version.is_some());
        let versions = versioned
            .map(|KnownIdentity { file, image: i, .. }| {
                (file.clone(), i.path.to_lowercase(), i.link_time, i.size)
            })
            .collect();
        let identities = identities
            .into_iter()
            .map(|KnownIdentity { file, image: i, .. }| {
                (
                    (file, i.pid.get(), i.base),
                    i.pdb.map(|p| (p.signature, p.age)),
                )
            })
            .collect();
        Truth {
            events,
            sessions,
            merges,
            faults,
            code,
            inventory,
            identities,
            versions,
            buffers,
            recorded,
        }
    }

    /// The session that wrote a file last.
    pub fn writer_of(&self, file: &str) -> Option<&SessionReport> {
        let mine = |(_, b): (&(usize, i64), &BufferReport)| b.file() == Some(file);
        let by_buffer = self
            .buffers
            .iter()
            .filter(|(k, b)| mine((k, b)))
            .map(|((s, _), _)| *s)
            .max();
        let named =
            |s: &&SessionReport| s.file.as_deref() == Some(file) || by_buffer == Some(s.index);
        self.sessions.iter().rfind(named)
    }

    /// The sessions that wrote a file: a later session may append to it.
    pub fn writers_of(&self, file: &str) -> Vec<&SessionReport> {
        let wrote = |s: &&SessionReport| {
            let buffers = self
                .buffers
                .range((s.index, i64::MIN)..=(s.index, i64::MAX));
            let mut buffers = buffers.map(|(_, b)| b);
            s.file.as_deref() == Some(file) || buffers.any(|b| b.file() == Some(file))
        };
        self.sessions.iter().filter(wrote).collect()
    }

    /// The events of a buffer.
    pub fn events_of(&self, session: usize, buffer: &BufferReport) -> Vec<&KnownEvent> {
        let all = self
            .recorded
            .get(&(session, buffer.processor))
            .map_or(&[][..], Vec::as_slice);
        let time = |n: u64| (self.events[usize::try_from(n).unwrap()].at, n);
        let (first, last) = (time(buffer.first_event), time(buffer.last_event));
        let from = all.partition_point(|n| time(*n as u64) < first);
        let to = all.partition_point(|n| time(*n as u64) <= last);
        all[from..to].iter().map(|n| &self.events[*n]).collect()
    }

    /// The intact buffers of a session in a file, by sequence number.
    pub fn whole_in<'t>(
        &'t self,
        session: usize,
        file: &'t str,
    ) -> impl Iterator<Item = &'t BufferReport> {
        self.buffers
            .range((session, i64::MIN)..=(session, i64::MAX))
            .map(|(_, b)| b)
            .filter(move |b| b.outcome == BufferOutcome::Written && b.file() == Some(file))
    }

    /// Number of records that a merge added for the images of a buffer's events: two for each, the
    /// image and its PDB.
    pub fn identities_of(&self, file: &str, session: usize, buffer: &BufferReport) -> u64 {
        let number = |event: &KnownEvent, name: &str| {
            let value = event.field(name).unwrap();
            match value {
                OwnedValue::UInt(v) | OwnedValue::Pointer(v) => *v,
                other => panic!("{name}: {other:?}"),
            }
        };
        let of_image = |event: &&KnownEvent| {
            let hooks = [0x030a, 0x1402, 0x1403, 0x1404];
            matches!(event.format, RecordFormat::System(hook) | RecordFormat::PerfInfo(hook) if hooks.contains(&hook))
                && {
                    let pid = u32::try_from(number(event, "ProcessId")).unwrap();
                    let image = (file.to_owned(), pid, number(event, "ImageBase"));
                    self.identities.contains_key(&image)
                }
        };
        2 * self
            .events_of(session, buffer)
            .into_iter()
            .filter(of_image)
            .count() as u64
    }

    /// Whether a fault changed this file.
    pub fn is_damaged(&self, file: &str) -> bool {
        self.faults.iter().any(|fault| fault.file == file)
    }
}

/// The timestamp of a session at a time.
pub fn timestamp(machine: &MachinePlan, session: &SessionReport, at: u64) -> i64 {
    ticks(machine, session.clock, at) + session.skew_ticks
}

/// The ticks of a clock at a time.
pub fn ticks(machine: &MachinePlan, clock: ClockType, at: u64) -> i64 {
    let since_boot = u128::from(machine.uptime + at);
    match clock {
        ClockType::SYSTEM_TIME => machine.start.get() + i64::try_from(at / 100).unwrap(),
        ClockType::CPU_CYCLE => (since_boot * u128::from(machine.cpu_mhz) / 1_000) as i64,
        _ => (since_boot * u128::from(machine.frequency) / u128::from(SECOND)) as i64,
    }
}
