//! Parser of `dotnet-trace` lines, which record EventPipe sessions of .NET.
//!
//! Source: the options of its `collect` and `collect-linux` commands.

use super::args::{Args, Switch, Values, unknown, wrong};
use super::collection::{self, clr_events, level, profiles, unquoted};
use super::error::{Found, LineError};
use super::model::{Action, CollectedProcess, Collection};
use super::tokens::Word;
use etl_format::parse_number;

/// Switches that an error may suggest for an unknown one.
const KNOWN: &str = "process-id name diagnostic-port output buffersize providers profile format \
    duration clrevents clreventlevel rundown show-child-io resume-runtime dsrouter \
    stopping-event-provider-name stopping-event-event-name stopping-event-payload-filter";

/// Options that are kept as they are written.
const OTHERS: [&str; 5] = [
    "dsrouter",
    "perf-events",
    "stopping-event-provider-name",
    "stopping-event-event-name",
    "stopping-event-payload-filter",
];

/// Switches that are kept, with or without a value.
const FLAGS: [&str; 3] = ["show-child-io", "resume-runtime", "probe"];

/// The formats of the file.
const FORMATS: [&str; 3] = ["NetTrace", "Speedscope", "Chromium"];

/// The levels of a provider without one: the versions before 9.0.66 used all keywords and verbose.
const DEFAULT_LEVEL: u8 = 4;

pub(super) fn parse(mut args: Args) -> Result<Vec<Action>, LineError> {
    let command = args.value("collect or collect-linux")?;
    let mut collection = match command.text.as_str() {
        "collect" => Collection::default(),
        "collect-linux" => Collection {
            has_kernel: true,
            ..Collection::default()
        },
        _ => {
            let error = wrong(&command, "collect or collect-linux");
            return Err(error.hint("only these commands of dotnet-trace record"));
        }
    };
    while !args.is_empty() {
        let Some(switch) = args.switch() else {
            return Err(args.missing("an option of dotnet-trace, --providers for instance"));
        };
        if switch.negated && switch.name.is_empty() {
            collection.process = CollectedProcess::Command(args.rest());
            break;
        }
        option(&mut collection, &switch, &mut args)?;
    }
    collection.enable_providers();
    Ok(vec![Action::Collect(Box::new(collection))])
}

/// An option with its value.
fn option(collection: &mut Collection, switch: &Switch, args: &mut Args) -> Result<(), LineError> {
    match switch.name.as_str() {
        "p" | "process-id" => {
            collection.process = CollectedProcess::Id(args.number("the id of a process")?);
        }
        "n" | "name" => {
            let name = args.text("the name of a process")?;
            collection.process = CollectedProcess::Name(unquoted(&name).to_owned());
        }
        "diagnostic-port" | "dport" => {
            let port = args.text("a diagnostic port")?;
            collection.process = CollectedProcess::Port(port);
        }
        "o" | "output" => {
            let file = args.text("a file")?;
            collection.file = Some(unquoted(&file).to_owned());
        }
        "buffersize" => collection.buffer_mb = Some(args.number("the size of the buffer, in MB")?),
        "providers" => {
            let list = args.value("providers NAME:MASK:LEVEL")?;
            let named = collection::providers(&list, DEFAULT_LEVEL)?;
            collection.named.extend(named);
        }
        "profile" => collection.profiles.extend(profiles(args)?),
        "clrevents" => collection.clr_events.extend(clr_events(args)?),
        "clreventlevel" => {
            let word = args.value("a level")?;
            let expected = "a level: 0 to 5, or its name (verbose)";
            let level = level(&word.text).ok_or_else(|| wrong(&word, expected))?;
            collection.clr_level = Some(level);
        }
        "format" => collection.format = Some(format(&args.value("the format of the file")?)?),
        "duration" => {
            let word = args.value("a time dd:hh:mm:ss")?;
            collection.duration = Some(duration(&word)?);
        }
        "rundown" => collection.rundown = Some(flag(args)?),
        name if OTHERS.contains(&name) => {
            let other = args.other(switch.name.clone(), Values::One)?;
            collection.others.push(other);
        }
        name if FLAGS.contains(&name) => {
            let other = args.other(switch.name.clone(), Values::Many)?;
            collection.others.push(other);
        }
        _ => return Err(unknown(switch, "an option of dotnet-trace", KNOWN)),
    }
    Ok(())
}

fn format(word: &Word) -> Result<&'static str, LineError> {
    let mut formats = FORMATS.into_iter();
    let format = formats.find(|name| name.eq_ignore_ascii_case(&word.text));
    format.ok_or_else(|| wrong(word, "NetTrace, Speedscope or Chromium"))
}

/// A time of two to four numbers with colons between.
fn duration(word: &Word) -> Result<String, LineError> {
    let parts: Vec<&str> = word.text.split(':').collect();
    let are_numbers = parts.iter().all(|part| parse_number::<u32>(part).is_some());
    if are_numbers && (3..=4).contains(&parts.len()) {
        Ok(word.text.clone())
    } else {
        Err(wrong(word, "a time dd:hh:mm:ss"))
    }
}

/// `true`, `false`, or nothing, which means true.
fn flag(args: &mut Args) -> Result<bool, LineError> {
    let Some(word) = args.optional() else {
        return Ok(true);
    };
    match word.text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(LineError::new(
            word.span.clone(),
            "true or false",
            Found::Text(word.text),
        )),
    }
}
