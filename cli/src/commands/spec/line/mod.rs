//! `etlkit spec line`: explains command lines of xperf, logman, tracelog and dotnet-trace.

mod json;
mod text;

use std::io::Read;

use etl_control::controller::{CommandLine, LineError, OtherOption, ProviderRef, Script};
use etl_format::constants::{ClockType, LogFileMode};
use etl_schema::tables::Registry;
use serde_json::Value;

use crate::error::Failure;
use crate::escape::one_line;
use crate::missing::nearest;

use super::Printed;
use text::ListEvents;

/// Bytes of standard input that are read.
const MAX_INPUT: u64 = 1 << 20;

/// Arguments of `etlkit spec line`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads command lines of xperf, logman and tracelog (also with the dashes of a word processor), of
dotnet-trace, settings of a .NET process (DOTNET_EventPipeConfig=..), and plain lists of providers.
Quote the line, or write lines or a script (.cmd) to standard input: commands of other programs are
left out, with a note unless they are built into the command prompt.

Examples:
  etlkit spec line 'xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl'
  etlkit spec line 'logman start clr -p Microsoft-Windows-DotNETRuntime (LoaderKeyword) 5 -ets'
  etlkit spec line 'dotnet-trace collect -p 4711 --clrevents gc+jit --clreventlevel verbose'
  etlkit spec line 'DOTNET_EnableEventPipe=1 DOTNET_EventPipeConfig=System.Runtime:FF:5'
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
    let mut lines = Vec::new();
    if args.line == "-" {
        let mut text = String::new();
        let input = std::io::stdin().lock();
        input
            .take(MAX_INPUT)
            .read_to_string(&mut text)
            .map_err(|error| Failure::io("(standard input)", &error))?;
        let script = Script::parse(&text);
        for unknown in &script.unknown {
            let nearest = nearest(&unknown.nearest);
            stderr_line!(
                "note: line {}: {} is left out: not a command of a session{nearest}",
                unknown.line,
                unknown.program
            );
        }
        for command in &script.commands {
            let subject = format!("(standard input), line {}", command.line);
            lines.push(parse(&subject, &command.text)?);
        }
    } else {
        lines.push(parse("command line", &args.line)?);
    }
    if lines.is_empty() {
        return Err(Failure::new("(standard input)", "contains no command line")
            .hint("give a line as argument, or write lines to standard input"));
    }
    let list_events = if args.events {
        ListEvents::Yes
    } else {
        ListEvents::No
    };
    let mut texts = Vec::new();
    let mut json = Vec::new();
    for line in &lines {
        let actions = line.explain();
        texts.push(text::line(line, &actions, list_events));
        json.push(json::line(line, &actions));
    }
    // A single line has no list around it.
    let json = match <[Value; 1]>::try_from(json) {
        Ok([line]) => line,
        Err(lines) => Value::from(lines),
    };
    Ok(Printed {
        text: texts.join("\n"),
        json,
    })
}

fn parse(subject: &str, line: &str) -> Result<CommandLine, Failure> {
    let mut parsed: CommandLine = line.parse().map_err(|error: LineError| {
        let message = format!("{error}\n{}", marked(line, &error));
        let failure = Failure::new(subject, message).lines();
        match &error.hint {
            Some(hint) => failure.hint(hint),
            None => failure.hint("`etlkit spec line --help` shows examples"),
        }
    })?;
    parsed.complete_names();
    Ok(parsed)
}

/// The line, with the position of the error marked below.
fn marked(line: &str, error: &LineError) -> String {
    let before = line.get(..error.span.start).unwrap_or_default();
    let marked = line.get(error.span.clone()).unwrap_or_default();
    let indent = " ".repeat(before.chars().count());
    let mark = "^".repeat(marked.chars().count().max(1));
    let line = line.replace(char::is_control, " ");
    format!("  {line}\n  {indent}{mark}")
}

/// Name and GUID of a provider, as far as they are known.
fn provider_text(provider: &ProviderRef) -> String {
    if let Some(described) = provider.described() {
        return format!("{} ({})", described.name, described.guid);
    }
    match provider {
        ProviderRef::Guid(guid) => guid.to_string(),
        ProviderRef::Name(name) => one_line(name),
        ProviderRef::Hashed(name) => {
            let guid = provider.guid(Registry::builtin()).unwrap_or_default();
            format!("{} ({guid})", one_line(name))
        }
        ProviderRef::File(file) => format!("the providers listed in {}", one_line(file)),
    }
}

/// An option as it is written.
fn option(option: &OtherOption) -> String {
    format!("-{} {}", option.name, option.values.join(" "))
        .trim_end()
        .to_owned()
}

/// The name of a value in both formats.
struct ValueName {
    json: &'static str,
    text: &'static str,
}

const fn file_mode(mode: LogFileMode) -> ValueName {
    let (json, text) = match mode {
        LogFileMode::CIRCULAR => ("circular", "circular"),
        LogFileMode::APPEND => ("append", "append"),
        LogFileMode::NEWFILE => ("new_file", "new files"),
        LogFileMode::BUFFERING => ("buffering", "in memory"),
        _ => ("sequential", "sequential"),
    };
    ValueName { json, text }
}

const fn clock(clock: ClockType) -> ValueName {
    let (json, text) = match clock {
        ClockType::SYSTEM_TIME => ("system_time", "system time"),
        ClockType::CPU_CYCLE => ("cpu_cycles", "processor cycles"),
        _ => ("qpc", "performance counter"),
    };
    ValueName { json, text }
}
