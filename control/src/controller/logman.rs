//! Parser of `logman` lines: one action on one session, with options in any order.
//!
//! Source: the reference of `logman create trace` and its siblings, and the tool's own help.

use super::args::{Args, Switch, Values, mask, provider, unknown, values_of, wrong};
use super::error::LineError;
use super::model::{Action, Keywords, OtherOption, ProviderRef, ProviderSpec, Session};
use super::tokens::Word;
use etl_format::constants::{ClockType, LogFileMode};
use etl_format::parse_number;

/// Switches that an error may suggest for an unknown one.
const KNOWN: &str = "p pf o n ets rt bs nb mode ct max ft f a cnf ul";

/// Options that are kept as they are written, with their values: see [`values_of`].
const OTHERS: &str = "b=* config=1 e=* fd ln=1 m=* ow r rc=1 rf=1 s=1 u=* v=1 y";

/// Words for the modes of `-mode`, and their bits.
const MODES: &[(&str, LogFileMode)] = &[
    ("sequential", LogFileMode::SEQUENTIAL),
    ("circular", LogFileMode::CIRCULAR),
    ("append", LogFileMode::APPEND),
    ("newfile", LogFileMode::NEWFILE),
    ("preallocate", LogFileMode::PREALLOCATE),
    ("realtime", LogFileMode::REAL_TIME),
    ("buffering", LogFileMode::BUFFERING),
    ("globalsequence", LogFileMode::GLOBAL_SEQUENCE),
    ("localsequence", LogFileMode::LOCAL_SEQUENCE),
    ("pagedmemory", LogFileMode::USE_PAGED_MEMORY),
];

/// The words of `-ct`.
pub(super) const CLOCKS: &[(&str, ClockType)] = &[
    ("perf", ClockType::QPC),
    ("system", ClockType::SYSTEM_TIME),
    ("cycle", ClockType::CPU_CYCLE),
];

/// Levels by name, with or without `win:`.
const LEVELS: &[(&str, u8)] = &[
    ("logalways", 0),
    ("critical", 1),
    ("error", 2),
    ("warning", 3),
    ("informational", 4),
    ("info", 4),
    ("verbose", 5),
];

/// The name of the provider for kernel events.
const KERNEL_PROVIDER: &str = "windows kernel trace";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Start,
    Stop,
    Delete,
    Update,
    Query,
}

const VERBS: &[(&str, Verb)] = &[
    ("create", Verb::Create),
    ("start", Verb::Start),
    ("stop", Verb::Stop),
    ("delete", Verb::Delete),
    ("update", Verb::Update),
    ("query", Verb::Query),
];

pub(super) fn parse(mut args: Args) -> Result<Vec<Action>, LineError> {
    let verb = args.choice("create, start, stop, delete, update or query", VERBS)?;
    let mut session = Session::default();
    let mut positional = Vec::new();
    while !args.is_empty() {
        match args.switch() {
            Some(switch) => option(&mut session, &mut positional, &switch, &mut args)?,
            None => positional.extend(args.optional()),
        }
    }
    let name = name(verb, positional, &mut args)?;
    if verb == Verb::Query {
        return Ok(vec![Action::Query {
            session: name,
            direct: session.direct,
        }]);
    }
    session.name = name.ok_or_else(|| args.missing("the session's name"))?;
    Ok(vec![match verb {
        Verb::Stop => Action::Stop {
            session: session.name,
            direct: session.direct,
        },
        Verb::Delete => Action::Delete {
            session: session.name,
        },
        Verb::Update => Action::Update(Box::new(session)),
        // With -ets the session is started at once, and no collector is saved.
        Verb::Create if !session.direct => Action::Create(Box::new(session)),
        _ => Action::Start(Box::new(session)),
    }])
}

/// The session's name: among the words that belong to no option, it follows the kind of collector.
fn name(verb: Verb, words: Vec<Word>, args: &mut Args) -> Result<Option<String>, LineError> {
    let mut words = words.into_iter().peekable();
    let kind = words
        .peek()
        .map(|w| w.text.to_ascii_lowercase())
        .unwrap_or_default();
    let needed = verb == Verb::Create;
    match kind.as_str() {
        "counter" | "alert" | "cfg" | "api" if needed => {
            let word = words.next();
            return Err(word.map_or_else(|| args.missing("trace"), |w| wrong(&w, "trace")));
        }
        "trace" => {
            let word = words.next();
            // A session can itself be called "trace".
            if words.peek().is_none() && !needed {
                return Ok(word.map(|w| w.text));
            }
        }
        "providers" if verb == Verb::Query => return Ok(None),
        _ if needed => return Err(args_error(words.peek(), args)),
        _ => {}
    }
    let name = words.next().map(|w| w.text);
    match words.next() {
        Some(word) => Err(wrong(&word, "one name and options")),
        None => Ok(name),
    }
}

fn args_error(word: Option<&Word>, args: &mut Args) -> LineError {
    word.map_or_else(
        || args.missing("trace"),
        |w| wrong(w, "trace, the kind of what is created"),
    )
}

/// Options of one session. Those of its file have a function of their own.
fn option(
    session: &mut Session,
    positional: &mut Vec<Word>,
    switch: &Switch,
    args: &mut Args,
) -> Result<(), LineError> {
    let off = switch.negated;
    match (switch.name.as_str(), off) {
        ("ets", false) => session.direct = true,
        ("n", false) => positional.push(args.value("the session's name")?),
        ("p", false) => one_provider(session, args)?,
        ("p", true) => {
            let name = args.text("a provider's name or GUID")?;
            session.removed.push(ProviderSpec::new(provider(&name)));
        }
        ("pf", false) => {
            let file = ProviderRef::File(args.text("a file that lists providers")?);
            session.providers.push(ProviderSpec::new(file));
        }
        ("rt", _) => turn(session, LogFileMode::REAL_TIME, off),
        ("ul", _) => turn(session, LogFileMode::PRIVATE, off),
        ("bs", false) => session.buffer_kb = Some(args.number("the size of a buffer, in KB")?),
        ("nb", false) => {
            session.min_buffers = Some(args.number("how many buffers at least")?);
            if let Some(word) = args.optional() {
                let count = parse_number(&word.text);
                let expected = "how many buffers at most";
                session.max_buffers = Some(count.ok_or_else(|| wrong(&word, expected))?);
            }
        }
        ("ft", false) => {
            let word = args.value("a time, [[hh:]mm:]ss")?;
            let seconds = seconds(&word.text).ok_or_else(|| wrong(&word, "a time, [[hh:]mm:]ss"));
            session.flush_seconds = Some(seconds?);
        }
        ("ct", false) => {
            session.clock = Some(args.choice("perf, system or cycle", CLOCKS)?);
        }
        ("mode", false) => modes(session, args)?,
        ("o" | "a" | "cnf" | "max" | "f", false) => file_option(session, switch, args)?,
        _ => other_option(session, switch, args)?,
    }
    Ok(())
}

/// Options of the session's file.
fn file_option(session: &mut Session, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
    match switch.name.as_str() {
        "o" => session.file = Some(args.text("a file")?),
        "a" => session.file_mode = Some(LogFileMode::APPEND),
        "cnf" => match args.optional() {
            Some(time) => session.others.push(OtherOption {
                name: switch.name.clone(),
                values: vec![time.text],
            }),
            None => session.file_mode = Some(LogFileMode::NEWFILE),
        },
        "max" => session.max_file = Some(args.number("the file's largest size, in MB")?),
        _ => {
            let modes = [
                ("bin", LogFileMode::SEQUENTIAL),
                ("bincirc", LogFileMode::CIRCULAR),
            ];
            let mode = args.choice("bin or bincirc", &modes)?;
            // A file that is appended to is sequential.
            if (mode, session.file_mode) != (LogFileMode::SEQUENTIAL, Some(LogFileMode::APPEND)) {
                session.file_mode = Some(mode);
            }
        }
    }
    Ok(())
}

/// Keeps an option as it is written. An option with a second dash has no values.
fn other_option(session: &mut Session, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
    let name = switch.name.as_str();
    let off = switch.negated;
    let negatable = ["a", "cnf", "max"].contains(&name) && off;
    let values = match values_of(OTHERS, name) {
        Some(_) if off => Values::None,
        Some(values) => values,
        None if negatable => Values::None,
        None => return Err(unknown(switch, "an option of logman", KNOWN)),
    };
    let name = if off {
        format!("-{name}")
    } else {
        name.to_owned()
    };
    session.others.push(args.other(name, values)?);
    Ok(())
}

fn turn(session: &mut Session, mode: LogFileMode, off: bool) {
    if off {
        session.modes_off.0 |= mode.0;
        session.modes.0 &= !mode.0;
    } else {
        session.modes.0 |= mode.0;
        session.modes_off.0 &= !mode.0;
    }
}

/// `-mode` with one or more numbers or names.
fn modes(session: &mut Session, args: &mut Args) -> Result<(), LineError> {
    const EXPECTED: &str = "globalsequence, localsequence, pagedmemory or a number";
    let mut word = args.value(EXPECTED)?;
    loop {
        for name in word.text.split([',', '|', '+']) {
            let mode = match MODES
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
            {
                Some((_, mode)) => Some(*mode),
                None => parse_number(name).map(LogFileMode),
            };
            session.absorb(mode.ok_or_else(|| wrong(&word, EXPECTED))?);
        }
        match args.optional() {
            Some(next) => word = next,
            None => return Ok(()),
        }
    }
}

/// `-p NAME [MASK|(NAMES) [LEVEL]]`.
pub(super) fn one_provider(session: &mut Session, args: &mut Args) -> Result<(), LineError> {
    let name = args.text("a provider's name or GUID")?;
    let mut spec = ProviderSpec::new(provider(&name));
    if let Some(word) = args.optional() {
        let keywords = match mask(&word.text) {
            Some(mask) => mask,
            None => Keywords::Names(names(&word, args)?),
        };
        spec.keywords = Some(keywords);
    }
    if let Some(word) = args.optional() {
        let level = level(&word.text);
        spec.level = Some(level.ok_or_else(|| wrong(&word, "a level from 0 to 255"))?);
    }
    // The kernel provider is enabled by flags with names of their own.
    match (&spec.provider, &spec.keywords) {
        (ProviderRef::Name(name), Some(Keywords::Names(flags)))
            if name.eq_ignore_ascii_case(KERNEL_PROVIDER) && spec.level.is_none() =>
        {
            session.kernel.extend(flags.iter().cloned());
        }
        _ => session.providers.push(spec),
    }
    Ok(())
}

/// A level by name, with or without `win:`, or by number.
fn level(text: &str) -> Option<u8> {
    let name = match text.split_at_checked("win:".len()) {
        Some((prefix, name)) if prefix.eq_ignore_ascii_case("win:") => name,
        _ => text,
    };
    for (known_name, level) in LEVELS {
        if known_name.eq_ignore_ascii_case(name) {
            return Some(*level);
        }
    }
    parse_number(text)
}

/// Names in parentheses with commas between them, or a single name. Spaces within a name are kept.
fn names(first: &Word, args: &mut Args) -> Result<Vec<String>, LineError> {
    const EXPECTED: &str = "keywords in parentheses, with commas between";
    let Some(rest) = first.text.strip_prefix('(') else {
        // A comma or a parenthesis belongs to a list without its opening parenthesis.
        let is_list = first.text.contains([',', '(', ')']);
        let name = first.text.trim();
        if is_list || name.is_empty() {
            return Err(wrong(first, EXPECTED));
        }
        return Ok(vec![name.to_owned()]);
    };
    let mut text = rest.to_owned();
    while !text.ends_with(')') {
        text.push(' ');
        text.push_str(&args.text("a parenthesis that closes the list")?);
    }
    let names = text.strip_suffix(')').unwrap_or_default().split(',');
    let names: Vec<String> = names.map(|n| n.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(wrong(first, EXPECTED));
    }
    Ok(names)
}

/// `[[hh:]mm:]ss` in seconds.
fn seconds(text: &str) -> Option<u32> {
    let mut total = 0u32;
    let mut fields = 0u8;
    for field in text.split(':') {
        fields = fields.checked_add(1).filter(|&n| n <= 3)?;
        if field.is_empty() || !field.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        total = total.checked_mul(60)?.checked_add(field.parse().ok()?)?;
    }
    Some(total)
}
