//! Sessions: their settings, enabled providers and faults.

use core::mem::discriminant;

use etl_control::controller::RUNDOWN_KEYWORDS;
use etl_control::enable::{Enablement, IdFilter, Variant};
use etl_format::constants::{ClockType, LogFileMode};
use etl_format::{Guid, ProcessId};
use etl_schema::Identity;
use etl_schema::clr::keyword::{END_RUNDOWN, START_RUNDOWN};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::Registry;

use super::KernelFlags;
use crate::time::{Nanos, SECOND};

/// A provider that a session enables.
#[derive(Clone, Debug, PartialEq)]
pub struct EnablePlan {
    /// The provider.
    pub provider: Guid,
    /// Level, keywords and ids.
    pub rule: Enablement,
    /// Only these processes; all when empty.
    pub processes: Vec<ProcessId>,
    /// Only processes of these executables; all when empty.
    pub executables: Vec<String>,
    /// Whether a stack is taken with every event.
    pub stacks: bool,
    /// Ids of the events that a stack is taken with.
    pub stack_ids: IdFilter,
}

impl EnablePlan {
    /// A provider by keyword mask and level.
    #[must_use]
    pub fn new(provider: Guid, mask: u64, level: u8) -> Self {
        EnablePlan {
            provider,
            rule: Enablement::new(level, mask),
            processes: Vec::new(),
            executables: Vec::new(),
            stacks: false,
            stack_ids: IdFilter::Any,
        }
    }

    /// Whether it applies in a process, by its id and its executable. `name` is asked only if there
    /// is a filter by executable.
    ///
    /// ```
    /// use etl_format::ProcessId;
    /// use etl_schema::providers::CLR_RUNTIME;
    /// use etl_synth::model::EnablePlan;
    ///
    /// let mut plan = EnablePlan::new(CLR_RUNTIME, 0x10, 5);
    /// plan.executables = vec!["app.exe".to_owned()];
    /// assert!(plan.reaches(ProcessId::new(100), || "App.exe"));
    /// assert!(!plan.reaches(ProcessId::new(200), || "other.exe"));
    /// ```
    pub fn reaches<'n>(&self, pid: ProcessId, name: impl FnOnce() -> &'n str) -> bool {
        (self.processes.is_empty() || self.processes.contains(&pid))
            && (self.executables.is_empty() || self.is_of(name()))
    }

    /// Whether the filter by executable includes this one.
    #[must_use]
    pub fn is_of(&self, name: &str) -> bool {
        self.executables.is_empty()
            || self
                .executables
                .iter()
                .any(|e| e.eq_ignore_ascii_case(name))
    }
}

/// A fault of a session or of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The file is truncated to this percentage of its bytes.
    Truncated(u8),
    /// This many bits flip after the first buffer.
    Flipped(u32),
    /// The second half of the last buffer is zeros.
    Torn,
    /// The session is not stopped: no last flush, and the header is not updated.
    NotClosed,
    /// Every `n`-th buffer is lost on its way to the disk.
    LostBuffers(u32),
    /// The timestamps are ahead of the clock by this many ticks.
    Skew(i64),
    /// Every `n`-th event is lost although a buffer is free, and counted.
    LostEvents(u32),
    /// The session disables the rundown provider after this many of its events: the enumeration is
    /// not completed.
    CutRundown(u32),
    /// The Complete events of rundowns are missing, and are not counted as lost.
    CompleteMissing,
    /// The rundown was enabled with 0x80, which has no effect there, instead of EndRundown (0x100).
    WrongKeyword,
    /// A merge omits the files of the session.
    Unmerged,
    /// The file is circular with a maximum size of this many KB.
    CircularWrap(u32),
}

impl Fault {
    /// All faults with their usual numbers, and their names.
    pub(crate) const ALL: [(&'static str, Fault); 12] = [
        ("truncated", Fault::Truncated(50)),
        ("flipped", Fault::Flipped(1)),
        ("torn", Fault::Torn),
        ("not-closed", Fault::NotClosed),
        ("lost-buffers", Fault::LostBuffers(2)),
        ("skew", Fault::Skew(10_000)),
        ("lost-events", Fault::LostEvents(10)),
        ("cut-rundown", Fault::CutRundown(50)),
        ("complete-missing", Fault::CompleteMissing),
        ("wrong-keyword", Fault::WrongKeyword),
        ("unmerged", Fault::Unmerged),
        ("circular-wrap", Fault::CircularWrap(256)),
    ];

    /// Whether it changes written bytes.
    #[must_use]
    pub const fn is_of_the_file(&self) -> bool {
        matches!(self, Fault::Truncated(_) | Fault::Flipped(_) | Fault::Torn)
    }

    /// Its word in a script.
    ///
    /// ```
    /// use etl_synth::model::Fault;
    ///
    /// assert_eq!(Fault::NotClosed.name(), "not-closed");
    /// assert!(Fault::Truncated(50).is_of_the_file() && !Fault::Skew(10).is_of_the_file());
    /// ```
    #[must_use]
    pub fn name(&self) -> &'static str {
        for (name, fault) in Fault::ALL {
            if discriminant(&fault) == discriminant(self) {
                return name;
            }
        }
        ""
    }
}

/// A fault of a session that a command line starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFault {
    /// The name of the session.
    pub session: String,
    /// The fault.
    pub fault: Fault,
}

/// A session.
///
/// ```
/// use etl_format::read::{Options, Trace};
/// use etl_synth::model::{Fault, Scenario, SessionPlan};
/// use etl_synth::{SECOND, Simulation};
///
/// let mut session = SessionPlan::new("clr", "clr.etl");
/// session.faults.push(Fault::NotClosed);
/// let mut scenario = Scenario::new("crash");
/// scenario.start(SECOND, session);
/// let files = Simulation::new(&scenario).run_in_memory()?;
/// let trace = Trace::open(files[0].bytes.as_slice(), &Options::salvage())?;
/// assert!(!trace.header().is_closed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    /// Its name.
    pub name: String,
    /// Its file; `None` for a session in memory or in real time. In mode NEWFILE `%d` is replaced
    /// by the number of the file.
    pub file: Option<String>,
    /// The process that the session is private to, by name or id. With mode PRIVATE and no process
    /// there is a session in each process that registers one of the providers.
    pub process: Option<String>,
    /// Its mode.
    pub mode: LogFileMode,
    /// Bytes of a buffer.
    pub buffer_size: u32,
    /// Maximum number of buffers.
    pub buffers: u32,
    /// Maximum size of the file in MB, or in KB by mode; 0: no limit.
    pub maximum_size: u32,
    /// Time after which buffers are flushed even if they are not full; 0: never.
    pub flush_timer: Nanos,
    /// The clock of the timestamps.
    pub clock: ClockType,
    /// Providers that it enables at its start.
    pub providers: Vec<EnablePlan>,
    /// Its kernel flags.
    pub kernel: KernelFlags,
    /// Nanoseconds between two samples of a processor.
    pub sample_interval: Nanos,
    /// Its faults.
    pub faults: Vec<Fault>,
    /// Settings of an EventPipe session, which records the events of one .NET process, and whose
    /// trace is like the trace of a converted `.nettrace` stream. It needs `process`.
    pub event_pipe: Option<EventPipePlan>,
}

/// Settings of an EventPipe session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPipePlan {
    /// The keywords with which the runtime lists its code when the session stops; `None` for no
    /// rundown.
    pub rundown: Option<u64>,
}

impl Default for EventPipePlan {
    /// The rundown that the runtime uses unless a session chooses another.
    fn default() -> Self {
        EventPipePlan {
            rundown: Some(RUNDOWN_KEYWORDS),
        }
    }
}

impl EventPipePlan {
    /// How EventPipe enables a provider: events without keyword pass a mask of 0, a stack is part
    /// of its event, and the CLR's own events about stacks do not exist.
    pub(crate) fn enablement(self, plan: &EnablePlan) -> EnablePlan {
        let mut plan = plan.clone();
        plan.rule.variant = Variant::EventPipe;
        match plan.provider {
            CLR_RUNTIME => {
                plan.rule.ids = IdFilter::Out(vec![RUNTIME_STACK]);
                plan.stacks = true;
                plan.stack_ids = IdFilter::In(ids_with_stack());
            }
            CLR_RUNDOWN => {
                plan.rule.any = plan.rule.any & !START_RUNDOWN | END_RUNDOWN;
                plan.rule.ids = IdFilter::Out(vec![RUNDOWN_STACK]);
            }
            _ => plan.stacks = true,
        }
        plan
    }
}

/// Ids of the events about stacks of the runtime and of the rundown provider.
const RUNTIME_STACK: u16 = 82;
const RUNDOWN_STACK: u16 = 0;

/// Ids of the runtime's events that have stacks.
fn ids_with_stack() -> Vec<u16> {
    let mut ids = Vec::new();
    let runtime = Registry::builtin().provider(CLR_RUNTIME);
    for event in runtime.map_or(&[][..], |runtime| &runtime.events) {
        if let Identity::Modern { id, .. } = event.schema.identity
            && event.stack
        {
            ids.push(id);
        }
    }
    ids.dedup();
    ids
}

impl SessionPlan {
    /// A session as `xperf -start NAME -f FILE` makes it: sequential, 64 KiB buffers, 64 of them,
    /// flushed every second.
    #[must_use]
    pub fn new(name: impl Into<String>, file: impl Into<String>) -> Self {
        SessionPlan {
            name: name.into(),
            file: Some(file.into()),
            process: None,
            mode: LogFileMode::SEQUENTIAL,
            buffer_size: 0x1_0000,
            buffers: 64,
            maximum_size: 0,
            flush_timer: SECOND,
            clock: ClockType::QPC,
            providers: Vec::new(),
            kernel: KernelFlags::default(),
            sample_interval: 1_000_000,
            faults: Vec::new(),
            event_pipe: None,
        }
    }

    /// Adds a provider by level and mask.
    #[must_use]
    pub fn with(mut self, provider: Guid, mask: u64, level: u8) -> Self {
        self.providers.push(EnablePlan::new(provider, mask, level));
        self
    }
}

/// Range of the file number in the file name of a NEWFILE session (`%d` or `%06d`), and its minimum
/// number of digits.
pub(crate) fn number_range(name: &str) -> Option<(core::ops::Range<usize>, usize)> {
    name.match_indices('%').find_map(|(at, _)| {
        let rest = name.get(at + 1..)?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .filter(|n| *n <= 2)?;
        let width = rest.get(..digits)?;
        rest.get(digits..)?.starts_with('d').then_some(())?;
        let width = if width.is_empty() {
            0
        } else {
            width.parse().ok()?
        };
        Some((at..at + 1 + digits + 1, width))
    })
}

/// The name of a file of a NEWFILE session.
pub(crate) fn numbered_file(name: &str, number: u32) -> String {
    let mut out = name.to_owned();
    if let Some((range, width)) = number_range(name) {
        out.replace_range(range, &format!("{number:0width$}"));
    }
    out
}
