//! Parser of `tracelog` lines: one action on one session, with options in any order.
//!
//! Source: the reference of the tool's command syntax.

use std::ops::Range;

use super::args::{Args, GUID, Switch, unknown, values_of, wrong};
use super::error::{Found, LineError};
use super::model::{Action, KERNEL_SESSION, Keywords, ProviderRef, ProviderSpec, Session};
use super::tokens::Word;
use crate::enable::{EnableProperties, IdFilter, MAX_IDS, MAX_PROCESSES};
use etl_format::constants::{ClockType, LogFileMode};

/// Switches that an error may suggest for an unknown one.
const KNOWN: &str = "start stop update enable disable flush capturestate q l enumguid guid matchanykw \
    matchallkw level flag flags f b min max cir seq newfile append rt ft useperfcounter \
    usesystemtime usecpucycle ls gs prealloc buffering eflag eventidfilter pidfilter \
    exefilter enableproperty";

/// Switches that turn kernel events on or off.
pub(super) const KERNEL: &[&str] = &[
    "cm",
    "dpcisr",
    "fio",
    "hf",
    "img",
    "nodisk",
    "nonet",
    "noprocess",
    "nothread",
    "pf",
];

/// Switches that are modes of the session.
pub(super) const MODES: &[(&str, LogFileMode)] = &[
    ("addtotriagedump", LogFileMode::ADDTO_TRIAGE_DUMP),
    ("gs", LogFileMode::GLOBAL_SEQUENCE),
    ("independent", LogFileMode::INDEPENDENT_SESSION),
    ("kb", LogFileMode::USE_KBYTES_FOR_SIZE),
    ("kd", LogFileMode::KD_FILTER),
    ("lowcapacity", LogFileMode::NO_PER_PROCESSOR_BUFFERING),
    ("ls", LogFileMode::LOCAL_SEQUENCE),
    ("paged", LogFileMode::USE_PAGED_MEMORY),
    ("prealloc", LogFileMode::PREALLOCATE),
    ("rt", LogFileMode::REAL_TIME),
    ("secure", LogFileMode::SECURE),
    ("systemlogger", LogFileMode::SYSTEM_LOGGER),
    ("um", LogFileMode::PRIVATE),
];

/// The words of `-hybridshutdown`.
pub(super) const HYBRID_SHUTDOWN: &[(&str, LogFileMode)] = &[
    ("stop", LogFileMode::STOP_ON_HYBRID_SHUTDOWN),
    ("persist", LogFileMode::PERSIST_ON_HYBRID_SHUTDOWN),
];

/// Options that are kept as they are written, with their values: see [`values_of`].
const OTHERS: &str = "bt=1 critsec heap lbr=1 lp pmc=1 profilesource=1 sessionguid=1 setprofint=* \
    sourceguid=1 timeout=1";

/// The log file of a line that names none.
const DEFAULT_FILE: &str = r"C:\LogFile.etl";
/// The largest number of words of group masks, the arguments of `-eflag`.
const MASKS: usize = 8;
/// The largest number of processes of `-pids`.
const MAX_PIDS: usize = 10;

#[derive(Default)]
struct Tracelog {
    verb: Option<Verb>,
    session: Session,
    guids: Vec<ProviderRef>,
    enabled: Option<Enabled>,
}

struct Verb {
    name: String,
    /// The name of its session, if the line has one.
    session: Option<String>,
}

/// How all providers of a line are enabled.
struct Enabled {
    spec: ProviderSpec,
    /// The position of the first option that says so.
    span: Range<usize>,
}

pub(super) fn parse(mut args: Args) -> Result<Vec<Action>, LineError> {
    const EXPECTED: &str = "-start, -stop, -update, -enable, -disable, -flush, -l, -enumguid or -q";
    let mut line = Tracelog::default();
    while !args.is_empty() {
        let Some(switch) = args.switch() else {
            return Err(args.missing("a switch of tracelog"));
        };
        if switch.negated {
            return Err(unknown(&switch, "a switch with one dash", KNOWN));
        }
        match switch.name.as_str() {
            "start" | "stop" | "update" | "enable" | "enableex" | "disable" | "flush" | "q"
            | "l" | "enumguid" | "capturestate" | "systemrundown" | "addautologger" => {
                if line.verb.is_some() {
                    return Err(unknown(&switch, "one action in a line", ""));
                }
                let unnamed = matches!(switch.name.as_str(), "l" | "enumguid");
                let session = if unnamed { None } else { args.optional() };
                line.verb = Some(Verb {
                    name: switch.name,
                    session: session.map(|word| word.text),
                });
            }
            _ => line.option(&switch, &mut args)?,
        }
    }
    if let Some(enabled) = &line.enabled
        && line.guids.is_empty()
    {
        let expected = "-guid #GUID, *NAME or FILE as well";
        let error = LineError::new(enabled.span.clone(), expected, Found::More);
        return Err(error.hint("the line says how providers are enabled, and not which"));
    }
    line.finish()
        .ok_or_else(|| args.missing(EXPECTED))
        .map(|action| vec![action])
}

impl Tracelog {
    fn finish(mut self) -> Option<Action> {
        let verb = self.verb?;
        let name = verb.session.unwrap_or_else(|| KERNEL_SESSION.to_owned());
        let mut providers = Vec::new();
        for provider in self.guids {
            let spec = self
                .enabled
                .as_ref()
                .map_or_else(default_spec, |enabled| enabled.spec.clone());
            providers.push(ProviderSpec { provider, ..spec });
        }
        let mut session = std::mem::take(&mut self.session);
        session.direct = true;
        Some(match verb.name.as_str() {
            "stop" => Action::Stop {
                session: name,
                direct: true,
            },
            "flush" => Action::Flush {
                session: name,
                file: session.file,
                direct: true,
            },
            "q" => Action::Query {
                session: Some(name),
                direct: true,
            },
            "l" => Action::Query {
                session: None,
                direct: true,
            },
            "enumguid" => Action::ListProviders,
            "capturestate" => Action::CaptureState {
                session: name,
                providers,
            },
            "systemrundown" => Action::SystemRundown { session: name },
            "disable" => Action::Disable {
                session: name,
                providers,
                kernel: session.kernel,
            },
            "enable" | "enableex" => Action::Enable {
                session: name,
                providers,
                kernel: session.kernel,
            },
            verb => {
                session.name = name;
                session.providers = providers;
                match verb {
                    "update" => Action::Update(Box::new(session)),
                    "addautologger" => Action::Create(Box::new(session)),
                    _ => Action::Start(Box::new(session)),
                }
            }
        })
    }

    fn enabled(&mut self, switch: &Switch) -> &mut ProviderSpec {
        let enabled = self.enabled.get_or_insert_with(|| Enabled {
            spec: default_spec(),
            span: switch.span.clone(),
        });
        &mut enabled.spec
    }

    fn option(&mut self, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
        let session = &mut self.session;
        match switch.name.as_str() {
            "f" => {
                let file = args
                    .optional()
                    .map_or_else(|| DEFAULT_FILE.to_owned(), |w| w.text);
                session.file = Some(file);
            }
            "b" => session.buffer_kb = Some(args.number("the size of a buffer, in KB")?),
            "min" => session.min_buffers = Some(args.number("how many buffers at least")?),
            "max" => session.max_buffers = Some(args.number("how many buffers at most")?),
            "ft" => session.flush_seconds = Some(args.number("seconds")?),
            "cir" | "seq" | "newfile" => {
                let hint = "the tool ignores the switch without a size";
                let size = args.number("the file's largest size");
                session.max_file = Some(size.map_err(|error| error.hint(hint))?);
                match switch.name.as_str() {
                    "cir" => session.file_mode = Some(LogFileMode::CIRCULAR),
                    "newfile" => session.file_mode = Some(LogFileMode::NEWFILE),
                    _ if session.file_mode == Some(LogFileMode::APPEND) => {}
                    _ => session.file_mode = Some(LogFileMode::SEQUENTIAL),
                }
            }
            "append" => session.file_mode = Some(LogFileMode::APPEND),
            "buffering" => session.file_mode = Some(LogFileMode::BUFFERING),
            "useperfcounter" => session.clock = Some(ClockType::QPC),
            "usesystemtime" => session.clock = Some(ClockType::SYSTEM_TIME),
            "usecpucycle" => session.clock = Some(ClockType::CPU_CYCLE),
            "hybridshutdown" => {
                session.modes.0 |= args.choice("stop or persist", HYBRID_SHUTDOWN)?.0;
            }
            "pids" => session.processes = args.counted(MAX_PIDS, "a process id")?,
            "stackwalk" => session
                .stack_walk
                .extend(args.names('+', "events to take stacks at")?),
            _ => self.provider_option(switch, args)?,
        }
        Ok(())
    }

    /// Options that say which providers are enabled, and how.
    fn provider_option(&mut self, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
        match switch.name.as_str() {
            "guid" => {
                let word = args.value(PROVIDER)?;
                self.guids.push(provider_ref(&word)?);
            }
            "matchanykw" => {
                let mask = args.number("a keyword mask of 64 bits")?;
                self.enabled(switch).keywords = Some(Keywords::Mask(mask));
            }
            "flag" | "flags" => {
                let flags = args.number("flags of 32 bits")?;
                self.enabled(switch).keywords = Some(Keywords::Flags(flags));
            }
            "matchallkw" => self.enabled(switch).all = args.number("a keyword mask of 64 bits")?,
            "level" => {
                // Documents write 0xFFFF here; the level that a provider receives has 8 bits.
                let level: u32 = args.number("a level")?;
                self.enabled(switch).level = Some(u8::try_from(level).unwrap_or(u8::MAX));
            }
            "enableproperty" => {
                let bits = args.number("properties as a number")?;
                self.enabled(switch).properties = EnableProperties(bits);
            }
            "eventidfilter" => self.enabled(switch).ids = ids(args)?,
            "stackwalkfilter" => self.enabled(switch).stack_ids = ids(args)?,
            "pidfilter" => {
                self.enabled(switch).scope.processes =
                    args.counted(MAX_PROCESSES, "a process id")?;
            }
            "exefilter" => {
                self.enabled(switch).scope.executables = args.names(';', "names of programs")?
            }
            "pkgidfilter" => {
                self.enabled(switch).scope.packages = args.names(';', "names of packages")?
            }
            "pkgappidfilter" => {
                self.enabled(switch).scope.apps = args.names(';', "ids of applications")?
            }
            "eflag" => {
                // This switch is kept with its arguments.
                let words: Vec<u32> = args.counted(MASKS, "a word of the group masks")?;
                let words = words.iter().map(|word| format!(" {word:#x}"));
                let count = words.len();
                self.session
                    .kernel
                    .push(format!("eflag {count}{}", words.collect::<String>()));
            }
            name if KERNEL.contains(&name) => self.session.kernel.push(switch.name.clone()),
            name => {
                if let Some((_, mode)) = MODES.iter().find(|(mode, _)| *mode == name) {
                    self.session.modes.0 |= mode.0;
                } else if let Some(values) = values_of(OTHERS, name) {
                    self.session
                        .others
                        .push(args.other(switch.name.clone(), values)?);
                } else {
                    return Err(unknown(switch, "a switch of tracelog", KNOWN));
                }
            }
        }
        Ok(())
    }
}

/// The forms of `-guid`.
const PROVIDER: &str = "#GUID, *NAME or a file that lists providers";

fn provider_ref(word: &Word) -> Result<ProviderRef, LineError> {
    if let Some(guid) = word.text.strip_prefix('#') {
        let guid = guid.parse().map_err(|_| wrong(word, GUID))?;
        return Ok(ProviderRef::Guid(guid));
    }
    if word.text.parse::<etl_format::Guid>().is_ok() {
        return Err(wrong(word, PROVIDER).hint(format!("write #{}", word.text)));
    }
    Ok(match word.text.strip_prefix('*') {
        Some(name) => ProviderRef::Hashed(name.to_owned()),
        None => ProviderRef::File(word.text.clone()),
    })
}

/// How providers are enabled by default.
fn default_spec() -> ProviderSpec {
    ProviderSpec::new(ProviderRef::Name(String::new()))
}

/// `{-in|-out} n id1 id2 ...`
fn ids(args: &mut Args) -> Result<IdFilter, LineError> {
    match args.switch() {
        Some(switch) if switch.name == "in" => {
            Ok(IdFilter::In(args.counted(MAX_IDS, "an event id")?))
        }
        Some(switch) if switch.name == "out" => {
            Ok(IdFilter::Out(args.counted(MAX_IDS, "an event id")?))
        }
        Some(switch) => Err(unknown(&switch, "-in or -out", "")),
        None => Err(args.missing("-in or -out")),
    }
}
