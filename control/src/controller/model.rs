//! Parsed command lines: actions, sessions, providers and their settings.

use etl_format::Guid;
use etl_format::constants::{ClockType, LogFileMode};

use super::error::Error;
use crate::enable::{EnableProperties, Enablement, IdFilter, Scope, Variant};
use etl_schema::providers;
use etl_schema::sources::provider_guid;
use etl_schema::tables::{Registry, windows};

/// The session that records kernel events. The tools use it if a line names no session.
pub const KERNEL_SESSION: &str = "NT Kernel Logger";

/// The tool that a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// `xperf`, of the Windows Performance Toolkit.
    Xperf,
    /// `logman`, part of Windows.
    Logman,
    /// `tracelog`, of the driver kit.
    Tracelog,
    /// `tracerpt`, part of Windows, which reads traces.
    Tracerpt,
    /// `tracefmt`, of the driver kit, which reads traces.
    Tracefmt,
    /// `dotnet-trace`, which records EventPipe sessions of .NET.
    DotnetTrace,
    /// No tool: settings with which a .NET process records itself
    /// (`DOTNET_EnableEventPipe=1 ..`).
    Settings,
    /// No tool: only a list of providers, `NAME:MASK:LEVEL+...`, or `stop NAME`, as documents write
    /// it.
    Plain,
}

impl Tool {
    /// The name of its program; empty for none.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tool::Xperf => "xperf",
            Tool::Logman => "logman",
            Tool::Tracelog => "tracelog",
            Tool::Tracerpt => "tracerpt",
            Tool::Tracefmt => "tracefmt",
            Tool::DotnetTrace => "dotnet-trace",
            Tool::Settings | Tool::Plain => "",
        }
    }
}

/// A whole line. `Display` writes it in one canonical spelling, which reads as the same value.
///
/// ```
/// use etl_control::controller::{Action, CommandLine, Tool};
///
/// let line: CommandLine = "logman stop clr -ets".parse()?;
/// assert_eq!(line.tool, Tool::Logman);
/// assert!(matches!(&line.actions[..], [Action::Stop { session, .. }] if session == "clr"));
/// # Ok::<(), etl_control::controller::LineError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The tool.
    pub tool: Tool,
    /// The actions that the line asks for, in order.
    pub actions: Vec<Action>,
    /// The text in parentheses after the command, in which documents remark on it.
    pub remark: Option<String>,
}

/// An action of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a session and enable providers for it.
    Start(Box<Session>),
    /// Save a session's settings without starting it (`logman create trace` without `-ets`).
    Create(Box<Session>),
    /// Change a session that runs.
    Update(Box<Session>),
    /// Enable providers for a session that runs.
    Enable {
        /// The session.
        session: String,
        /// The providers.
        providers: Vec<ProviderSpec>,
        /// Kernel flags by name, for the kernel's session.
        kernel: Vec<String>,
    },
    /// Disable providers of a session.
    Disable {
        /// The session.
        session: String,
        /// The providers; none for all.
        providers: Vec<ProviderSpec>,
        /// Kernel flags by name, for the kernel's session.
        kernel: Vec<String>,
    },
    /// Ask the providers of a session to log their state.
    CaptureState {
        /// The session.
        session: String,
        /// The providers; none for all.
        providers: Vec<ProviderSpec>,
    },
    /// Flush the session's buffers.
    Flush {
        /// The session.
        session: String,
        /// The file, for a session that keeps its events in memory.
        file: Option<String>,
        /// Whether this is about the running session and not its saved settings (`logman -ets`).
        direct: bool,
    },
    /// Stop a session.
    Stop {
        /// The session.
        session: String,
        /// Whether this is about the running session and not its saved settings (`logman -ets`).
        direct: bool,
    },
    /// Delete the saved settings of a session (`logman delete`).
    Delete {
        /// The session.
        session: String,
    },
    /// Ask the kernel to log its state to one session (`tracelog -systemrundown`).
    SystemRundown {
        /// The session.
        session: String,
    },
    /// Ask about sessions.
    Query {
        /// The session; `None` for all.
        session: Option<String>,
        /// Whether this is about running sessions and not saved settings (`logman -ets`).
        direct: bool,
    },
    /// List the providers that are registered (`tracelog -enumguid`).
    ListProviders,
    /// Decode the events of traces (`tracerpt`, `tracefmt`).
    Decode {
        /// The files.
        files: Vec<String>,
        /// Sessions that are read in real time.
        sessions: Vec<String>,
        /// The output file.
        output: Option<String>,
        /// Other options.
        options: Vec<OtherOption>,
    },
    /// Record an EventPipe session of .NET (`dotnet-trace collect`, or settings of the process).
    Collect(Box<Collection>),
    /// Merge files, and add what a reader on another machine needs.
    Merge {
        /// The files; empty for the files of the sessions that the same line stops (`xperf -d`).
        inputs: Vec<String>,
        /// The output file.
        output: String,
        /// Switches of the merge, without their dash, in lower case.
        options: Vec<String>,
    },
}

/// A session's settings. `None` is the tool's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub name: String,
    /// Providers to enable, in order.
    pub providers: Vec<ProviderSpec>,
    /// Providers to disable (`logman update --p`).
    pub removed: Vec<ProviderSpec>,
    /// Kernel flags and groups by name: `PROC_THREAD` of `xperf -on`, the switch `noprocess` of
    /// `tracelog`, or the words in parentheses of `logman`.
    pub kernel: Vec<String>,
    /// Kernel events for which stacks are recorded.
    pub stack_walk: Vec<String>,
    /// The file to write.
    pub file: Option<String>,
    /// Size of a buffer, in KB.
    pub buffer_kb: Option<u32>,
    /// The smallest number of buffers.
    pub min_buffers: Option<u32>,
    /// The largest number of buffers.
    pub max_buffers: Option<u32>,
    /// How the file is filled: one of [`FILE_MODES`].
    pub file_mode: Option<LogFileMode>,
    /// Largest size of the file, in MB, or in KB with
    /// [`USE_KBYTES_FOR_SIZE`](LogFileMode::USE_KBYTES_FOR_SIZE) in `modes`.
    pub max_file: Option<u32>,
    /// Seconds after which buffers are flushed.
    pub flush_seconds: Option<u32>,
    /// The clock of its timestamps.
    pub clock: Option<ClockType>,
    /// Further modes that the line turns on (real time, paged memory, sequence numbers ...).
    pub modes: LogFileMode,
    /// Modes that the line turns off (`logman --rt`).
    pub modes_off: LogFileMode,
    /// Processes of a session that watches heaps or critical sections.
    pub processes: Vec<u32>,
    /// Whether this is about the running session and not its saved settings (`logman -ets`).
    pub direct: bool,
    /// Options that do not affect the contents of the trace, as they are written: when to start,
    /// which user, sampling intervals.
    pub others: Vec<OtherOption>,
}

impl Session {
    /// A session with a name and default settings.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Session {
            name: name.into(),
            ..Session::default()
        }
    }

    /// Whether it is the kernel's own session.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        is_kernel(&self.name)
    }

    /// `LogFileMode` as the session's properties have it: the file mode with the further modes.
    ///
    /// ```
    /// use etl_control::controller::{Action, CommandLine};
    /// use etl_format::constants::LogFileMode;
    ///
    /// let line: CommandLine = "logman start clr -p {e13c0d23-ccbc-4e12-931b-d9cc2eee27e4} \
    ///     -mode circular -max 10 -o clr.etl -ets".parse()?;
    /// let [Action::Start(session)] = &line.actions[..] else { panic!("one session") };
    /// assert!(session.log_file_mode().has(LogFileMode::CIRCULAR));
    /// # Ok::<(), etl_control::controller::LineError>(())
    /// ```
    #[must_use]
    pub fn log_file_mode(&self) -> LogFileMode {
        self.file_mode.unwrap_or_default() | self.modes.without(self.modes_off)
    }

    /// Adds the bits of `LogFileMode`: bits that say how the file is filled become its mode, and
    /// other bits become further modes.
    pub(super) fn absorb(&mut self, mode: LogFileMode) {
        let mut rest = mode;
        for file in FILE_MODES {
            if rest.has(file) {
                self.file_mode = Some(file);
                rest = rest.without(file);
            }
        }
        self.modes.0 |= rest.0;
        self.modes_off = self.modes_off.without(rest);
    }

    /// Whether events are delivered in real time.
    #[must_use]
    pub fn real_time(&self) -> bool {
        self.log_file_mode().has(LogFileMode::REAL_TIME)
    }
}

/// Whether a name is the name of the kernel's session (case does not matter).
pub(super) fn is_kernel(name: &str) -> bool {
    name.eq_ignore_ascii_case(KERNEL_SESSION)
}

/// The modes that say how a file is filled. A session has one of them at most.
pub const FILE_MODES: [LogFileMode; 5] = [
    LogFileMode::SEQUENTIAL,
    LogFileMode::CIRCULAR,
    LogFileMode::APPEND,
    LogFileMode::NEWFILE,
    LogFileMode::BUFFERING,
];

/// A recording of an EventPipe session: one .NET process, or with `dotnet-trace collect-linux` a
/// whole machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// The processes that are recorded.
    pub process: CollectedProcess,
    /// Whether events of the Linux kernel are recorded as well (`dotnet-trace collect-linux`).
    pub has_kernel: bool,
    /// The providers that the session enables, as the tool computes them from `--providers`,
    /// `--profile` and `--clrevents`.
    pub providers: Vec<ProviderSpec>,
    /// The providers that the line names.
    pub named: Vec<ProviderSpec>,
    /// The profiles that the line names.
    pub profiles: Vec<String>,
    /// Keywords of the runtime by name (`--clrevents`).
    pub clr_events: Vec<String>,
    /// The level of these keywords (`--clreventlevel`).
    pub clr_level: Option<u8>,
    /// Whether the line requests a rundown; `None` if it leaves this to the tool.
    pub rundown: Option<bool>,
    /// The file.
    pub file: Option<String>,
    /// Size of the session's buffer, in MB.
    pub buffer_mb: Option<u32>,
    /// The format of the file: `NetTrace`, `Speedscope` or `Chromium`.
    pub format: Option<&'static str>,
    /// How long the recording lasts, as `dd:hh:mm:ss`.
    pub duration: Option<String>,
    /// Options that do not affect the contents of the trace, as they are written.
    pub others: Vec<OtherOption>,
}

/// The processes that a recording is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectedProcess {
    /// The line does not say: all processes of `collect-linux`, or the process that has the
    /// settings.
    #[default]
    Unstated,
    /// By its id.
    Id(u32),
    /// By its name.
    Name(String),
    /// The processes that connect to a diagnostic port.
    Port(String),
    /// A command that the tool starts, from its first event on.
    Command(Vec<String>),
}

/// An option that is kept as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOption {
    /// Its name without the dash (with one for a `logman` option that is turned off), in lower
    /// case.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// A provider, and how it is enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSpec {
    /// Its GUID or name, or a file that lists several.
    pub provider: ProviderRef,
    /// An event needs one of these keywords. `None` is the tool's default: all keywords for `xperf`
    /// and 0 for others. A mask of 0 means all keywords to modern providers and none to classic
    /// ones.
    pub keywords: Option<Keywords>,
    /// An event needs all of these keywords.
    pub all: u64,
    /// The level; `None` is the tool's default.
    pub level: Option<u8>,
    /// What is logged in addition to the events.
    pub properties: EnableProperties,
    /// The filter by event id.
    pub ids: IdFilter,
    /// The filter by event id for stacks.
    pub stack_ids: IdFilter,
    /// The processes in which it is enabled.
    pub scope: Scope,
    /// Arguments of a provider of EventPipe, `KEY=VALUE;..`; empty without.
    pub arguments: String,
    /// The variant of the enable rule: a mask of 0 requests all keywords of ETW, and none of
    /// EventPipe.
    pub variant: Variant,
}

impl ProviderSpec {
    /// A provider with default settings.
    #[must_use]
    pub fn new(provider: ProviderRef) -> Self {
        ProviderSpec {
            provider,
            keywords: None,
            all: 0,
            level: None,
            properties: EnableProperties::default(),
            ids: IdFilter::Any,
            stack_ids: IdFilter::Any,
            scope: Scope::default(),
            arguments: String::new(),
            variant: Variant::Current,
        }
    }

    /// The enablement that the session asks for. A level or a mask that the line does not have is
    /// 0: all levels, all keywords. Names of keywords are looked up in the provider's table in
    /// `registry` or among the providers of Windows.
    ///
    /// ```
    /// use etl_control::controller::{Keywords, ProviderRef, ProviderSpec};
    /// use etl_schema::providers::CLR_RUNTIME;
    /// use etl_schema::tables::Registry;
    ///
    /// let mut spec = ProviderSpec::new(ProviderRef::Guid(CLR_RUNTIME));
    /// spec.keywords = Some(Keywords::Names(vec!["JitKeyword".to_owned()]));
    /// let enablement = spec.enablement(Registry::builtin())?;
    /// assert_eq!((enablement.any, enablement.level), (0x10, 0));
    /// # Ok::<(), etl_control::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first keyword that the provider does not have, or whose provider is unknown.
    pub fn enablement(&self, registry: &Registry) -> Result<Enablement, Error> {
        let any = match &self.keywords {
            Some(Keywords::Names(names)) => {
                let provider = self.provider.guid(registry);
                let provider =
                    provider.and_then(|g| registry.provider(g).or_else(|| windows::kept(g)));
                let mut any = 0;
                for name in names {
                    let mask = provider.and_then(|p| p.keyword(name));
                    any |= mask.ok_or_else(|| Error::UnknownKeyword(name.clone()))?;
                }
                any
            }
            numbers => numbers.as_ref().and_then(Keywords::number).unwrap_or(0),
        };
        Ok(Enablement {
            all: self.all,
            ignore_keyword_0: self.properties.has(EnableProperties::IGNORE_KEYWORD_0),
            ids: self.ids.clone(),
            variant: self.variant,
            ..Enablement::new(self.level.unwrap_or(0), any)
        })
    }
}

/// A provider as a line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderRef {
    /// By its GUID.
    Guid(Guid),
    /// By its registered name.
    Name(String),
    /// By a name whose hash is the GUID (`tracelog -guid *NAME`).
    Hashed(String),
    /// All providers that a file lists (`logman -pf`, `tracelog -guid FILE`).
    File(String),
}

impl ProviderRef {
    /// The GUID itself, the GUID of the provider with this name in `registry` or of Windows, or the
    /// hash of the name. `None` for an unknown name and for a file.
    ///
    /// ```
    /// use etl_control::controller::ProviderRef;
    /// use etl_schema::tables::Registry;
    ///
    /// let hashed = ProviderRef::Hashed("Microsoft-Diagnostics-DiagnosticSource".to_owned());
    /// let guid = hashed.guid(Registry::builtin()).map(|guid| guid.to_string());
    /// assert_eq!(guid.as_deref(), Some("adb401e1-5296-51f8-c125-5fda75826144"));
    /// ```
    #[must_use]
    pub fn guid(&self, registry: &Registry) -> Option<Guid> {
        match self {
            ProviderRef::Guid(guid) => Some(*guid),
            ProviderRef::Name(name) => {
                let provider = registry
                    .providers()
                    .find(|p| p.name.eq_ignore_ascii_case(name));
                match provider {
                    Some(provider) => Some(provider.guid),
                    None => guid_by_full_name(name),
                }
            }
            ProviderRef::Hashed(name) => Some(provider_guid(name)),
            ProviderRef::File(_) => None,
        }
    }
}

/// The provider of Windows with exactly this name (case does not matter): the tools do not accept
/// the end of a name, as [`providers::by_name`] does.
fn guid_by_full_name(name: &str) -> Option<Guid> {
    let guid = providers::by_name(name)?;
    let full_name = providers::name(guid)?;
    if full_name.eq_ignore_ascii_case(name) {
        Some(guid)
    } else {
        None
    }
}

impl ProviderRef {
    /// Completes a name if only its end is given.
    pub(super) fn complete_name(&mut self) {
        if let ProviderRef::Name(name) = self
            && let Some(full_name) = providers::find(name).and_then(providers::name)
        {
            full_name.clone_into(name);
        }
    }

    /// The GUID, the name or the file.
    pub(super) fn text(&self) -> String {
        match self {
            ProviderRef::Guid(guid) => guid.to_string(),
            ProviderRef::Name(text) | ProviderRef::Hashed(text) | ProviderRef::File(text) => {
                text.clone()
            }
        }
    }
}

impl core::fmt::Display for ProviderRef {
    /// Its GUID, or its name in quotes.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ProviderRef::Guid(guid) => write!(f, "{guid}"),
            ProviderRef::Name(name) | ProviderRef::Hashed(name) => write!(f, "\"{name}\""),
            ProviderRef::File(file) => write!(f, "listed in \"{file}\""),
        }
    }
}

/// Keywords as a line writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keywords {
    /// As a number.
    Mask(u64),
    /// As the flags of a classic provider (`tracelog -flag`).
    Flags(u32),
    /// By name, as `logman` has them in parentheses.
    Names(Vec<String>),
}

impl Keywords {
    /// The mask or the flags; `None` for names.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Keywords::Mask(mask) => Some(*mask),
            Keywords::Flags(flags) => Some(u64::from(*flags)),
            Keywords::Names(_) => None,
        }
    }
}
