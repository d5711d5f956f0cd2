//! The corpus, simulated once: files, truth, and the events that each file contains.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use etl_format::Guid;
use etl_format::constants::LogFileMode;
use etl_schema::encode::OwnedValue;
use etl_synth::model::{Fault, Scenario};
use etl_synth::truth::{
    BufferOutcome, BufferReport, EventOutcome, InMemoryTruth, KnownCode, KnownEvent, RecordFormat,
};
use etl_synth::{MemoryFileSystem, Script};
use etl_test_support::root;

/// A scenario of the corpus and what came of it.
pub struct Made {
    pub name: String,
    pub scenario: Scenario,
    pub files: BTreeMap<String, Vec<u8>>,
    pub truth: Truth,
}

/// What the truth says, with what became of each buffer at last.
pub struct Truth {
    pub events: Vec<KnownEvent>,
    pub sessions: Vec<etl_synth::truth::SessionReport>,
    pub merges: Vec<(String, Vec<String>)>,
    pub faults: Vec<(usize, Fault, String, std::ops::Range<u64>)>,
    /// Code that came and went.
    pub code: Vec<KnownCode>,
    /// What is there at the end, a line of JSON for each thing.
    pub inventory: Vec<String>,
    /// Images that merges have told of, by file, process and first address: signature and age of their PDB, where they
    /// have one.
    pub identities: BTreeMap<(String, u32, u64), Option<(Guid, u32)>>,
    /// Files that say of themselves what they are, by the merged file that tells it.
    pub versions: BTreeSet<(String, String, u32, u64)>,
    /// By session and sequence number.
    pub buffers: BTreeMap<(usize, i64), BufferReport>,
    /// Events by session and processor whose buffer they went to, in the order in which they did.
    pub recorded: BTreeMap<(usize, u16), Vec<usize>>,
}

/// Every script of the corpus.
pub fn corpus() -> &'static [Made] {
    static MADE: LazyLock<Vec<Made>> =
        LazyLock::new(|| scripts().into_iter().map(|(name, s)| make(name, s)).collect());
    &MADE
}

/// Every script of the corpus, by name.
fn scripts() -> Vec<(String, Scenario)> {
    let corpus = root().join("corpus");
    let include = |file: &str| std::fs::read_to_string(corpus.join(file));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&corpus).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "kdl"));
    paths.sort();
    assert!(paths.len() >= 30, "{paths:?}");
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let scenario = Script::new(&name, &text).include(&include).parse();
        (name.clone(), scenario.unwrap_or_else(|e| panic!("{name}: {:#?}", e)))
    };
    paths.iter().map(read).collect()
}

/// Lets a scenario happen.
pub fn make(name: String, scenario: Scenario) -> Made {
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    etl_synth::Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    // The texts of messages are no trace.
    let traces = files.into_files().into_iter().filter(|(name, _)| !name.ends_with(".tmf"));
    let files = traces.collect();
    let modes: BTreeMap<usize, LogFileMode> =
        truth.sessions.iter().map(|s| (s.index, s.plan.mode)).collect();
    let mut recorded: BTreeMap<(usize, u16), Vec<usize>> = BTreeMap::new();
    for (at, event) in truth.events.iter().enumerate() {
        assert_eq!(event.number, at as u64, "{name}");
        for (session, outcome) in &event.outcomes {
            if *outcome == EventOutcome::Recorded {
                let one = modes[session].has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
                let lane = if one { 0 } else { event.processor };
                recorded.entry((*session, lane)).or_default().push(at);
            }
        }
    }
    // The last word on a buffer counts.
    let buffers = truth.buffers.into_iter().map(|(s, b)| ((s, b.sequence), b)).collect();
    let InMemoryTruth { events, sessions, merges, faults, code, inventory, identities, .. } = truth;
    let said = identities.iter().filter(|(_, i)| i.version.is_some());
    let versions =
        said.map(|(file, i)| (file.clone(), i.path.to_lowercase(), i.link_time, i.size)).collect();
    let identities = identities
        .into_iter()
        .map(|(file, i)| ((file, i.pid, i.base), i.pdb.map(|p| (p.signature, p.age))))
        .collect();
    let truth = Truth {
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
    };
    Made { name, scenario, files, truth }
}

impl Truth {
    /// The session that wrote a file last.
    pub fn writer_of(&self, file: &str) -> Option<&etl_synth::truth::SessionReport> {
        let mine = |(_, b): (&(usize, i64), &BufferReport)| b.file() == Some(file);
        let by_buffer =
            self.buffers.iter().filter(|(k, b)| mine((k, b))).map(|((s, _), _)| *s).max();
        let named = |s: &&etl_synth::truth::SessionReport| {
            s.file.as_deref() == Some(file) || by_buffer == Some(s.index)
        };
        self.sessions.iter().rfind(named)
    }

    /// The sessions that wrote a file, one after the other: a file may be appended to.
    pub fn writers_of(&self, file: &str) -> Vec<&etl_synth::truth::SessionReport> {
        let wrote = |s: &&etl_synth::truth::SessionReport| {
            let buffers = self.buffers.range((s.index, i64::MIN)..=(s.index, i64::MAX));
            let mut buffers = buffers.map(|(_, b)| b);
            s.file.as_deref() == Some(file) || buffers.any(|b| b.file() == Some(file))
        };
        self.sessions.iter().filter(wrote).collect()
    }

    /// The events of a buffer.
    pub fn events_of(&self, session: usize, buffer: &BufferReport) -> Vec<&KnownEvent> {
        let all = self.recorded.get(&(session, buffer.processor)).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|n| (*n as u64) < buffer.first_event);
        let to = all.partition_point(|n| (*n as u64) <= buffer.last_event);
        all[from..to].iter().map(|n| &self.events[*n]).collect()
    }

    /// The buffers of a session that stand whole in a file, by sequence number.
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

    /// Records that a merge has added for the images that events in a buffer tell of: what the image is, and
    /// what its PDB is.
    pub fn identities_of(&self, file: &str, session: usize, buffer: &BufferReport) -> u64 {
        let number = |event: &KnownEvent, name: &str| {
            let value = &event.fields.iter().find(|(n, _)| n == name).unwrap().1;
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
        2 * self.events_of(session, buffer).into_iter().filter(of_image).count() as u64
    }

    /// Whether a fault changed this file.
    pub fn is_damaged(&self, file: &str) -> bool {
        self.faults.iter().any(|(_, _, name, _)| name == file)
    }
}
