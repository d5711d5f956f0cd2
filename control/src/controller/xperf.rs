//! Parser of `xperf` lines: a list of sessions with their options, stops and merges.
//!
//! Source: the reference of its `start`, `stop`, `merge` and `stackwalk` commands.

use std::ops::Range;

use super::args::{Args, GUID, Switch, mask, provider, unknown, values_of, wrong};
use super::error::{Found, LineError};
use super::model::{Action, KERNEL_SESSION, ProviderRef, ProviderSpec, Session};
use super::tokens::Word;
use crate::enable::EnableProperties;
use etl_format::constants::{ClockType, LogFileMode};
use etl_format::parse_number;

/// Switches that an error may suggest for an unknown one.
const KNOWN: &str = "start update on stop d flush capturestate merge loggers f buffersize \
    minbuffers maxbuffers maxfile flushtimer filemode buffering realtime clocktype stackwalk \
    lowcapacity pids";

/// Options that are kept as they are written, with their values: see [`values_of`].
const OTHERS: &str = "agelimit=1 critsec heap pidnewproc=1 pmc=* pmcprofile=1 pooltag=1 \
    resetprofint seteresourcesample=* setprofint=* setspinlocksample=*";

/// The words of `-FileMode`.
pub(super) const FILE_MODES: &[(&str, LogFileMode)] = &[
    ("Sequential", LogFileMode::SEQUENTIAL),
    ("Circular", LogFileMode::CIRCULAR),
    ("Append", LogFileMode::APPEND),
    ("NewFile", LogFileMode::NEWFILE),
];

/// The words of `-ClockType`.
pub(super) const CLOCKS: &[(&str, ClockType)] = &[
    ("PerfCounter", ClockType::QPC),
    ("SystemTime", ClockType::SYSTEM_TIME),
    ("Cycle", ClockType::CPU_CYCLE),
];

/// Switches of a merge. The documents' own example has `-d`, which does nothing there.
const MERGE: &str = "d suppresspii compress mergeonly injectonly";

struct Xperf {
    actions: Vec<Action>,
}

pub(super) fn parse(mut args: Args) -> Result<Vec<Action>, LineError> {
    let mut xperf = Xperf {
        actions: Vec::new(),
    };
    while !args.is_empty() {
        let Some(switch) = args.switch() else {
            return Err(args.missing("a switch of xperf, -start or -on for instance"));
        };
        xperf.switch(&switch, &mut args)?;
    }
    if xperf.actions.is_empty() {
        return Err(args.missing("-start, -on, -update, -stop, -flush or -merge"));
    }
    Ok(xperf.actions)
}

impl Xperf {
    fn begin(&mut self, update: bool, name: String) {
        let session = Box::new(Session {
            direct: true,
            ..Session::named(name)
        });
        self.actions.push(if update {
            Action::Update(session)
        } else {
            Action::Start(session)
        });
    }

    /// The session that the line describes at this point: its last action.
    fn open(&mut self) -> Option<&mut Session> {
        match self.actions.last_mut()? {
            Action::Start(session) | Action::Update(session) => Some(session),
            _ => None,
        }
    }

    /// The session that an option is for.
    fn session(&mut self, switch: &Switch) -> Result<&mut Session, LineError> {
        let found = Found::Text(format!("-{}", switch.name));
        self.open().ok_or_else(|| {
            LineError::new(switch.span.clone(), "-start NAME or -on before it", found)
                .hint("options are those of the session that was started or updated before them")
        })
    }

    fn switch(&mut self, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
        if switch.negated {
            return Err(unknown(switch, "a switch with one dash", KNOWN));
        }
        match switch.name.as_str() {
            "start" => {
                let name = args.text("the session's name")?;
                self.begin(false, name);
            }
            "update" => {
                let name = optional_name(args);
                self.begin(true, name);
            }
            "on" => self.on(args)?,
            "stop" => {
                let session = optional_name(args);
                self.actions.push(Action::Stop {
                    session,
                    direct: true,
                });
            }
            "flush" => {
                let session = optional_name(args);
                self.actions.push(Action::Flush {
                    session,
                    file: None,
                    direct: true,
                });
            }
            "d" => {
                let output = args.text("the file that is made")?;
                if !self
                    .actions
                    .iter()
                    .any(|a| matches!(a, Action::Stop { .. }))
                {
                    let session = KERNEL_SESSION.to_owned();
                    self.actions.push(Action::Stop {
                        session,
                        direct: true,
                    });
                }
                self.actions.push(Action::Merge {
                    inputs: Vec::new(),
                    output,
                    options: Vec::new(),
                });
            }
            "capturestate" => {
                let session = args.text("the session's name")?;
                let providers = providers(&args.value("providers")?)?;
                self.actions
                    .push(Action::CaptureState { session, providers });
            }
            "loggers" => self.actions.push(Action::Query {
                session: None,
                direct: true,
            }),
            "merge" => self.merge(args)?,
            "f" => {
                let to = args.text("a file")?;
                match self.actions.last_mut() {
                    Some(Action::Flush { file, .. }) => *file = Some(to),
                    _ => self.session(switch)?.file = Some(to),
                }
            }
            _ => self.option(switch, args)?,
        }
        Ok(())
    }

    fn on(&mut self, args: &mut Args) -> Result<(), LineError> {
        let word = args.value("kernel flags, or providers NAME:MASK:LEVEL")?;
        if self.open().is_none() {
            self.begin(false, KERNEL_SESSION.to_owned());
        }
        let Some(session) = self.open() else {
            return Ok(());
        };
        if session.is_kernel() {
            for part in parts(&word.text, word.span.clone(), '+') {
                let flag = part.text;
                if flag.contains(':') || flag.parse::<etl_format::Guid>().is_ok() {
                    let found = Found::Text(flag.to_owned());
                    return Err(LineError::new(part.span, "a kernel flag", found).hint(
                        "a provider needs a session of its own: put -start NAME before -on",
                    ));
                }
                if flag.is_empty() {
                    return Err(part.wrong("a kernel flag"));
                }
                session.kernel.push(flag.to_owned());
            }
        } else {
            session.providers.extend(providers(&word)?);
        }
        Ok(())
    }

    fn option(&mut self, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
        let session = self.session(switch)?;
        match switch.name.as_str() {
            "buffersize" => session.buffer_kb = Some(args.number("the size of a buffer, in KB")?),
            "minbuffers" => session.min_buffers = Some(args.number("how many buffers at least")?),
            "maxbuffers" => session.max_buffers = Some(args.number("how many buffers at most")?),
            "maxfile" => session.max_file = Some(args.number("the file's largest size, in MB")?),
            "flushtimer" => session.flush_seconds = Some(args.number("seconds")?),
            "buffering" => session.file_mode = Some(LogFileMode::BUFFERING),
            "realtime" => session.modes.0 |= LogFileMode::REAL_TIME.0,
            "lowcapacity" => session.modes.0 |= LogFileMode::NO_PER_PROCESSOR_BUFFERING.0,
            "filemode" => {
                let expected = "Sequential, Circular, Append or NewFile";
                session.file_mode = Some(args.choice(expected, FILE_MODES)?);
            }
            "clocktype" => {
                session.clock = Some(args.choice("PerfCounter, SystemTime or Cycle", CLOCKS)?);
            }
            "stackwalk" => session
                .stack_walk
                .extend(args.names('+', "events to take stacks at")?),
            "pids" => {
                session.processes.push(args.number("a process id")?);
                while let Some(word) = args.optional() {
                    let id =
                        parse_number(&word.text).ok_or_else(|| wrong(&word, "a process id"))?;
                    session.processes.push(id);
                }
            }
            name => match values_of(OTHERS, name) {
                Some(values) => session
                    .others
                    .push(args.other(switch.name.clone(), values)?),
                None => return Err(unknown(switch, "a switch of xperf", KNOWN)),
            },
        }
        Ok(())
    }

    fn merge(&mut self, args: &mut Args) -> Result<(), LineError> {
        let mut files = Vec::new();
        let mut options = Vec::new();
        while !args.is_empty() {
            if let Some(switch) = args.switch() {
                if switch.negated || !MERGE.split(' ').any(|known| known == switch.name) {
                    return Err(unknown(&switch, "a file or a switch of -merge", MERGE));
                }
                if switch.name != "d" && !options.contains(&switch.name) {
                    options.push(switch.name);
                }
            } else if let Some(word) = args.optional() {
                files.push(word.text);
            }
        }
        match files.pop() {
            Some(output) if !files.is_empty() => {
                self.actions.push(Action::Merge {
                    inputs: files,
                    output,
                    options,
                });
                Ok(())
            }
            _ => Err(args.missing("the files to merge, and last the file that is made")),
        }
    }
}

fn optional_name(args: &mut Args) -> String {
    args.optional()
        .map_or_else(|| KERNEL_SESSION.to_owned(), |word| word.text)
}

/// A part of a text between separators.
#[derive(Default)]
struct Part<'a> {
    text: &'a str,
    /// Its position in the line. In a word with quotes or escapes the exact position is unknown, so
    /// this is the position of the whole word.
    span: Range<usize>,
}

impl Part<'_> {
    fn wrong(self, expected: &str) -> LineError {
        LineError::new(self.span, expected, Found::Text(self.text.to_owned()))
    }
}

fn parts(text: &str, span: Range<usize>, separator: char) -> impl Iterator<Item = Part<'_>> {
    let verbatim = text.len() == span.len();
    let mut next = span.start;
    text.split(separator).map(move |part| {
        let start = next;
        let end = start.saturating_add(part.len());
        next = end.saturating_add(separator.len_utf8());
        Part {
            text: part,
            span: if verbatim { start..end } else { span.clone() },
        }
    })
}

/// One or more `NAME[:MASK[:LEVEL[:PROPERTIES]]]` with plus signs between.
pub(super) fn providers(word: &Word) -> Result<Vec<ProviderSpec>, LineError> {
    let texts = parts(&word.text, word.span.clone(), '+');
    texts.map(one_provider).collect()
}

fn one_provider(part: Part<'_>) -> Result<ProviderSpec, LineError> {
    let mut fields = parts(part.text, part.span, ':');
    let name = fields.next().unwrap_or_default();
    if name.text.is_empty() {
        return Err(name.wrong("a provider's name or GUID"));
    }
    let mut spec = ProviderSpec::new(provider(name.text));
    if looks_like_a_guid(name.text) && matches!(spec.provider, ProviderRef::Name(_)) {
        return Err(name.wrong(GUID));
    }
    if let Some(field) = fields.next().filter(|field| !field.text.is_empty()) {
        let expected = "a keyword mask, decimal or 0x and hexadecimal, of 64 bits at most";
        let keywords = mask(field.text);
        spec.keywords = Some(keywords.ok_or_else(|| field.wrong(expected))?);
    }
    if let Some(field) = fields.next().filter(|field| !field.text.is_empty()) {
        let level = parse_number(field.text);
        spec.level = Some(level.ok_or_else(|| field.wrong("a level from 0 to 255"))?);
    }
    if let Some(field) = fields.next() {
        let expected = "'stack', 'sid' or 'tsid', with commas between, or a number";
        spec.properties = properties(field.text).ok_or_else(|| field.wrong(expected))?;
    }
    if let Some(field) = fields.next() {
        return Err(field.wrong("a plus sign before the next provider, or nothing more"));
    }
    Ok(spec)
}

/// Whether a name looks like a GUID with an error in it.
fn looks_like_a_guid(name: &str) -> bool {
    let name = name.strip_prefix('{').unwrap_or(name);
    let Some((first, rest)) = name.split_once('-') else {
        return false;
    };
    first.len() == 8
        && first.bytes().all(|b| b.is_ascii_hexdigit())
        && rest.bytes().filter(|&b| b == b'-').count() >= 3
}

/// Properties in quotation marks of any kind, or as a number.
fn properties(text: &str) -> Option<EnableProperties> {
    if let Some(bits) = parse_number(text) {
        return Some(EnableProperties(bits));
    }
    const QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201b}', '`'];
    let inner = text
        .strip_prefix(QUOTES)
        .and_then(|t| t.strip_suffix(QUOTES))
        .unwrap_or(text);
    let mut properties = EnableProperties::default();
    for name in inner.split([',', '|']) {
        properties = properties.with(EnableProperties::named(name.trim())?);
    }
    Some(properties)
}
