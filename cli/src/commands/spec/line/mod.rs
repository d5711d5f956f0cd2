//! `etlkit spec line`: explains command lines of xperf, logman and tracelog.

mod explain;
mod script;

use std::io::Read;

use etl_control::controller::{Action, CommandLine, LineError, ProviderRef, Tool};
use etl_control::enable::{Enablement, EventKey};
use etl_control::mask;
use etl_format::constants::{ClockType, LogFileMode};
use etl_schema::providers;
use etl_schema::tables::{self, Provider, Registry, TableEvent, TableSet};
use serde_json::Value;

use crate::error::Failure;
use crate::escape::one_line;

use super::Printed;
use explain::explain;

/// Bytes of standard input that are read.
const MAX_INPUT: u64 = 1 << 20;

/// Arguments of `etlkit spec line`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads command lines of xperf, logman and tracelog (also with the dashes of a word processor), and
plain lists of providers. Quote the line, or write lines or a script (.cmd) to standard input: what
is no command of a session is left out, with a note unless the command prompt does it itself.

Examples:
  etlkit spec line 'xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl'
  etlkit spec line 'logman start clr -p Microsoft-Windows-DotNETRuntime (LoaderKeyword) 5 -ets'
  etlkit spec line --events 'Microsoft-Windows-DotNETRuntimeRundown:0x138:5'
  etlkit spec line - < record.cmd")]
pub(crate) struct LineArgs {
    /// Command line to explain; `-` reads lines from standard input
    line: String,
    /// List the events that are enabled for each provider
    #[arg(long)]
    events: bool,
}

/// Text and JSON for the line or lines.
pub(super) fn run(args: &LineArgs) -> Result<Printed, Failure> {
    let mut read = Vec::new();
    if args.line == "-" {
        let mut text = String::new();
        let input = std::io::stdin().lock();
        input
            .take(MAX_INPUT)
            .read_to_string(&mut text)
            .map_err(|error| Failure::io("(standard input)", &error))?;
        for command in script::commands(&text) {
            let subject = format!("(standard input), line {}", command.line);
            read.push(parse(&subject, &command.text)?);
        }
    } else {
        read.push(parse("command line", &args.line)?);
    }
    if read.is_empty() {
        return Err(Failure::new("(standard input)", "contains no command line")
            .hint("give a line as argument, or write lines to standard input"));
    }
    let explained = read.iter().map(|line| explain(line, args.events));
    let (texts, json): (Vec<String>, Vec<Value>) = explained.unzip();
    let json = <[Value; 1]>::try_from(json).map_or_else(Value::from, |[one]| one);
    Ok((texts.join("\n"), json))
}

fn parse(subject: &str, line: &str) -> Result<CommandLine, Failure> {
    let mut parsed = line.parse().map_err(|error: LineError| {
        let message = format!("{error}\n{}", marked(line, &error));
        let failure = Failure::new(subject, message).lines();
        match &error.hint {
            Some(hint) => failure.hint(hint),
            None => failure.hint("`etlkit spec line --help` shows examples"),
        }
    })?;
    complete_names(&mut parsed);
    Ok(parsed)
}

/// Writes the names of providers in full in a list without a tool: tools take no parts of names.
fn complete_names(line: &mut CommandLine) {
    for action in line.actions.iter_mut().filter(|_| line.tool == Tool::Plain) {
        let Action::Enable { providers, .. } = action else { continue };
        for spec in providers {
            if let ProviderRef::Name(name) = &mut spec.provider
                && let Some(full) = providers::find(name).and_then(providers::name)
            {
                full.clone_into(name);
            }
        }
    }
}

/// The line, with the position of the error marked below.
fn marked(line: &str, error: &LineError) -> String {
    let before = line.get(..error.span.start).unwrap_or_default().chars().count();
    let length = line.get(error.span.clone()).unwrap_or_default().chars().count().max(1);
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("  {line}\n  {}{}", " ".repeat(before), "^".repeat(length))
}

/// Name and GUID of a provider, as far as they are known.
fn provider_text(provider: &ProviderRef) -> String {
    let known = known(provider);
    match (provider, known) {
        (_, Some(known)) => format!("{} ({})", known.name, known.guid),
        (ProviderRef::Guid(guid), None) => guid.to_string(),
        (ProviderRef::Name(name), None) => one_line(name),
        (ProviderRef::Hashed(name), None) => {
            let guid = provider.guid(Registry::builtin()).unwrap_or_default();
            format!("{} ({guid})", one_line(name))
        }
        (ProviderRef::File(file), None) => format!("the providers listed in {}", one_line(file)),
    }
}

fn known(provider: &ProviderRef) -> Option<&'static Provider> {
    provider.guid(Registry::builtin()).and_then(|guid| tables::provider(TableSet::Shipped, guid))
}

/// The events that are enabled, by mask, level and the other filters.
fn raised<'a>(explained: &mask::Explanation<'a>, enabled: &Enablement) -> Vec<&'a TableEvent> {
    let admitted = |event: &&TableEvent| {
        let schema = &event.schema;
        let key = EventKey {
            id: super::list::id(event).0,
            level: schema.level.value,
            keyword: schema.keywords,
        };
        enabled.admits(&key)
    };
    explained.raised.iter().map(|r| r.event).filter(admitted).collect()
}

/// A file mode in JSON and in text.
const fn file_mode(mode: LogFileMode) -> (&'static str, &'static str) {
    match mode {
        LogFileMode::CIRCULAR => ("circular", "circular"),
        LogFileMode::APPEND => ("append", "append"),
        LogFileMode::NEWFILE => ("new_file", "new files"),
        LogFileMode::BUFFERING => ("buffering", "in memory"),
        _ => ("sequential", "sequential"),
    }
}

/// A clock in JSON and in text.
const fn clock(clock: ClockType) -> (&'static str, &'static str) {
    match clock {
        ClockType::SYSTEM_TIME => ("system_time", "system time"),
        ClockType::CPU_CYCLE => ("cpu_cycles", "processor cycles"),
        _ => ("qpc", "performance counter"),
    }
}
