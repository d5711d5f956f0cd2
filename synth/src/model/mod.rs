//! A scenario as data, read from a script or built in Rust.
//!
//! Every struct has a `new` with its required values, and public fields with defaults for the rest.
//! [`Simulation`](crate::Simulation) runs a scenario.

mod computer;
mod edit;
mod expectation;
mod interrupt;
mod io;
mod kernel;
mod location;
mod managed;
mod network;
mod process;
mod provider;
mod session;
mod step;
mod tags;

pub use computer::{DiskPlan, DisplayPlan, NetworkCardPlan, ServicePlan, VolumePlan};
pub use edit::{
    Amount, Changes, Edit, EditPlan, EditStep, FieldValue, HeaderField, RecordAction, RecordEdit,
    RecordSelector, Side,
};
pub use expectation::{Expectation, ExpectedVerdict};
pub use interrupt::{DpcKind, InterruptPlan};
pub use io::{FileTransfer, IoWork, NetworkMessage, PageRead};
pub(crate) use kernel::WORDS as KERNEL_WORDS;
pub use kernel::{KernelChange, KernelEvent, KernelFlags, group};
pub use location::ScriptLocation;
pub use managed::{
    AppDomainPlan, AssemblyPlan, ClrPlan, CodeKind, MethodPlan, ModuleKind, ModulePlan, PdbPlan,
    Sku,
};
pub use network::{ExchangePlan, Packet, PacketMedium, ResolvePlan};
pub(crate) use process::as_text;
pub use process::{FileVersion, ImagePlan, PdbIdentity, ProcessPlan, VersionInfo};
pub use provider::{ActivityWork, NamedValue, ProviderKind, ProviderPlan, RaisePlan};
pub use session::{EnablePlan, EventPipePlan, Fault, SessionFault, SessionPlan};
pub(crate) use session::{number_range, numbered_file};
pub use step::{
    Action, CallPlan, CalledMethods, ClrWork, CollectorProblem, GcPlan, HandleKind, Repeat,
    Request, Step, ThrowPlan, ToolCommand, Work,
};

use etl_format::FileTime;
use etl_format::constants::PointerSize;

use crate::time::{Nanos, SECOND};

/// A version of Windows.
///
/// ```
/// use etl_synth::model::WindowsVersion;
///
/// let windows_8_1 = WindowsVersion::new(6, 3, 9_600);
/// assert!(windows_8_1 < WindowsVersion::new(10, 0, 10_240));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WindowsVersion {
    /// The major version: 10 for Windows 10 and 11.
    pub major: u8,
    /// The minor version.
    pub minor: u8,
    /// The build.
    pub build: u32,
}

impl WindowsVersion {
    /// Windows 8.
    pub(crate) const WINDOWS_8: WindowsVersion = WindowsVersion::new(6, 2, 0);

    /// A version by its numbers.
    #[must_use]
    pub const fn new(major: u8, minor: u8, build: u32) -> Self {
        WindowsVersion {
            major,
            minor,
            build,
        }
    }
}

/// The computer that is traced.
///
/// ```
/// use etl_synth::model::{MachinePlan, Scenario};
///
/// let mut scenario = Scenario::new("small");
/// scenario.machine = MachinePlan { processors: 2, ..MachinePlan::default() };
/// assert_eq!(scenario.machine.os.build, 19045);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePlan {
    /// The version of Windows.
    pub os: WindowsVersion,
    /// Width of pointers in trace headers and in the records of the kernel.
    pub pointer_size: PointerSize,
    /// Logical processors.
    pub processors: u16,
    /// Their speed in MHz.
    pub cpu_mhz: u32,
    /// Ticks of the performance counter in a second.
    pub frequency: u64,
    /// Wall-clock time at simulated time 0.
    pub start: FileTime,
    /// How long the machine had been running at simulated time 0.
    pub uptime: Nanos,
    /// Physical memory in MB.
    pub memory_mb: u32,
    /// Minutes to add to local time for UTC.
    pub bias: i32,
    /// Name of the time zone.
    pub zone: String,
    /// Bytes that the disk writes per second: how fast buffers become free again.
    pub disk_speed: u64,
    /// Its network name.
    pub computer: String,
    /// The domain that it is in; none when empty.
    pub domain: String,
    /// Its disks; the first one has the system's volume.
    pub disks: Vec<DiskPlan>,
    /// Bytes of a packet that the packet monitor logs at most; all if `None`.
    pub packet_bytes: Option<u16>,
    /// Of a hundred samples of idle processors, how many find the processor in a deferred procedure
    /// call or in an interrupt service routine.
    pub interrupts: u8,
    /// Its network cards.
    pub network_cards: Vec<NetworkCardPlan>,
    /// Its displays.
    pub displays: Vec<DisplayPlan>,
    /// Its services.
    pub services: Vec<ServicePlan>,
}

impl Default for MachinePlan {
    fn default() -> Self {
        MachinePlan {
            os: WindowsVersion::new(10, 0, 19045),
            pointer_size: PointerSize::P8,
            processors: 4,
            cpu_mhz: 2_400,
            frequency: 10_000_000,
            start: FileTime::new(134_120_196_000_000_000),
            uptime: 3_600 * SECOND,
            memory_mb: 16_384,
            bias: 0,
            zone: "UTC".to_owned(),
            disk_speed: 200_000_000,
            computer: "SYNTH".to_owned(),
            domain: String::new(),
            disks: vec![DiskPlan::default()],
            packet_bytes: None,
            interrupts: 0,
            network_cards: Vec::new(),
            displays: Vec::new(),
            services: Vec::new(),
        }
    }
}

/// Builds of Windows and the version of the kernel's events that they state.
const KERNEL_EVENT_VERSIONS: [(u32, u32); 3] = [(9_200, 0x2a), (18_362, 0x46), (26_100, 0x55)];

impl MachinePlan {
    /// The version of the kernel's events; 0 for builds before the first known one.
    pub(crate) fn kernel_event_version(&self) -> u32 {
        let newest = KERNEL_EVENT_VERSIONS
            .iter()
            .rev()
            .find(|(build, _)| self.os.build >= *build);
        newest.map_or(0, |(_, version)| *version)
    }
}

/// A scenario: a machine, its processes, and timed steps.
///
/// ```
/// use etl_schema::providers::CLR_RUNDOWN;
/// use etl_synth::model::{CodeKind, EnablePlan, MethodPlan, ProcessPlan, Request, Scenario};
/// use etl_synth::model::SessionPlan;
/// use etl_synth::{SECOND, Simulation};
///
/// let mut scenario = Scenario::new("rundown");
/// scenario.process(ProcessPlan::managed("App.exe", MethodPlan::many(20, CodeKind::Jitted)));
/// let rundown = EnablePlan::new(CLR_RUNDOWN, 0x138, 5);
/// scenario
///     .start(SECOND, SessionPlan::new("clr", "clr.etl"))
///     .request(2 * SECOND, "clr", Request::Enable(rundown))
///     .stop(3 * SECOND, "clr");
/// assert_eq!(Simulation::new(&scenario).run_in_memory()?.len(), 1);
/// # Ok::<(), etl_synth::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its purpose in a sentence.
    pub about: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The computer.
    pub machine: MachinePlan,
    /// Providers in addition to the CLR and the kernel.
    pub providers: Vec<ProviderPlan>,
    /// Its processes.
    pub processes: Vec<ProcessPlan>,
    /// Its steps, in any order. Steps at the same time happen in the order of this list.
    pub steps: Vec<Step>,
    /// Faults of sessions that command lines start.
    pub faults: Vec<SessionFault>,
    /// When the simulation ends; after the last step if `None`. Sessions that still
    /// run then are not closed, as after a loss of power.
    pub end: Option<Nanos>,
    /// Edits of the finished files.
    pub edits: Vec<EditPlan>,
    /// What a verifier has to find in the traces.
    pub expectations: Vec<Expectation>,
}

impl Scenario {
    /// An empty scenario with a name and seed 1.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Scenario {
            name: name.into(),
            seed: 1,
            ..Scenario::default()
        }
    }

    /// The scenario with another seed. Its expectations are removed, because they are written for
    /// the seed of the script.
    ///
    /// ```
    /// let scenario = etl_synth::Script::new("empty", "").parse()?;
    /// assert_eq!(scenario.with_seed(7).seed, 7);
    /// # Ok::<(), etl_synth::ScriptErrors>(())
    /// ```
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        if seed != self.seed {
            self.expectations.clear();
        }
        self.seed = seed;
        self
    }

    /// What a verifier has to find in a trace, if the script says so.
    #[must_use]
    pub fn expectation(&self, file: &str) -> Option<&Expectation> {
        let named = self
            .expectations
            .iter()
            .find(|e| e.files.iter().any(|name| name == file));
        named.or_else(|| self.expectations.iter().find(|e| e.files.is_empty()))
    }

    /// Whether a process calls methods, so that its runtime counts calls.
    pub(crate) fn calls_methods(&self, process: usize) -> bool {
        self.steps.iter().any(|step| match &step.action {
            Action::Work {
                process: of,
                work: Work::Call(_),
            } => *of == process,
            _ => false,
        })
    }

    /// Whether its steps may create a file more than once.
    pub(crate) fn creates_files_again(&self) -> bool {
        let mut files = std::collections::BTreeSet::new();
        self.steps.iter().any(|step| {
            let file = match &step.action {
                Action::Start(plan) => plan.file.as_deref(),
                Action::Merge { output, .. } => Some(output.as_str()),
                Action::Session(_, Request::Flush(file) | Request::Consume { file, .. }) => {
                    // A session in memory is flushed into its own file if none is named.
                    return file.is_none() || again(&mut files, file.as_deref(), step);
                }
                _ => None,
            };
            again(&mut files, file, step)
        })
    }

    /// Adds a process and returns its index, which [`Action::Work`] contains.
    pub fn process(&mut self, process: ProcessPlan) -> usize {
        self.processes.push(process);
        self.processes.len() - 1
    }

    /// Starts a session at a time.
    pub fn start(&mut self, at: Nanos, session: SessionPlan) -> &mut Self {
        self.at(at, Action::Start(Box::new(session)))
    }

    /// Changes a running session at a time: enables a provider in it, for example.
    pub fn request(&mut self, at: Nanos, session: &str, request: Request) -> &mut Self {
        self.at(at, Action::Session(session.to_owned(), request))
    }

    /// Stops a session at a time.
    pub fn stop(&mut self, at: Nanos, session: &str) -> &mut Self {
        self.request(at, session, Request::Stop)
    }

    /// Lets a process work at a time; [`Scenario::process`] returns the index of the process.
    pub fn work(&mut self, at: Nanos, process: usize, work: Work) -> &mut Self {
        self.at(at, Action::Work { process, work })
    }

    /// Adds a step at a time.
    pub fn at(&mut self, at: Nanos, action: Action) -> &mut Self {
        self.steps.push(Step {
            at,
            repeat: None,
            action,
            location: None,
            command: None,
        });
        self
    }

    /// Adds a step that repeats, in `[from, until)`.
    ///
    /// ```
    /// use etl_synth::model::{Action, CodeKind, MethodPlan, ProcessPlan, Scenario, Work};
    /// use etl_synth::{MILLISECOND, SECOND, Simulation};
    ///
    /// let mut scenario = Scenario::new("steady");
    /// let methods = MethodPlan::many(10, CodeKind::Jitted);
    /// let process = scenario.process(ProcessPlan::managed("App.exe", methods));
    /// let work = Action::Work { process, work: Work::Run(MILLISECOND) };
    /// scenario.every(100 * MILLISECOND, SECOND, 2 * SECOND, work);
    /// assert!(Simulation::new(&scenario).run_in_memory()?.is_empty(), "no session traces it");
    /// # Ok::<(), etl_synth::Error>(())
    /// ```
    pub fn every(&mut self, period: Nanos, from: Nanos, until: Nanos, action: Action) -> &mut Self {
        self.steps.push(Step {
            at: from,
            repeat: Some(Repeat {
                period,
                until,
                spread: None,
            }),
            action,
            location: None,
            command: None,
        });
        self
    }
}

/// Whether a step, or one before it, has created this file already.
fn again(files: &mut std::collections::BTreeSet<String>, file: Option<&str>, step: &Step) -> bool {
    file.is_some_and(|file| !files.insert(file.to_ascii_lowercase()) || step.repeat.is_some())
}
