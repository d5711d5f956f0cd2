//! `etlkit spec line`: explains command lines of xperf, logman and tracelog.

use std::fmt::{self, Write};
use std::io::Read;

use etl_control::controller::{
    Action, ClockType, CommandLine, FileMode, Keywords, LineError, ProviderRef, ProviderSpec,
    Session, Tool, expand_kernel_flags,
};
use etl_control::enable::{Enablement, EventKey, IdFilter};
use etl_control::mask;
use etl_schema::tables::TableSet;
use etl_schema::tables::{Provider, Registry, TableEvent};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::escape::one_line;

/// Bytes of standard input that are read.
const MAX_INPUT: u64 = 1 << 20;

/// Arguments of `etlkit spec line`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads command lines of xperf, logman and tracelog (also with the dashes of a word processor), and plain
lists of providers. Quote the line, or write lines to standard input.

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
pub(super) fn run(args: &LineArgs) -> Result<(String, Value), Failure> {
    let mut read = Vec::new();
    if args.line == "-" {
        let mut text = String::new();
        let input = std::io::stdin().lock();
        input
            .take(MAX_INPUT)
            .read_to_string(&mut text)
            .map_err(|error| Failure::io("(standard input)", &error))?;
        for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let subject = format!("(standard input), line {}", number.saturating_add(1));
            read.push(parse(&subject, line)?);
        }
    } else {
        read.push(parse("command line", &args.line)?);
    }
    if read.is_empty() {
        return Err(Failure::new("(standard input)", "contains no command line")
            .hint("give a line as argument, or write lines to standard input"));
    }
    let mut text = String::new();
    for (n, line) in read.iter().enumerate() {
        if n > 0 {
            text.push('\n');
        }
        // Writing to a String does not fail.
        let _ = describe(&mut text, line, args.events);
    }
    let json = match &read[..] {
        [one] => line_json(one),
        many => many.iter().map(line_json).collect(),
    };
    Ok((text, json))
}

fn parse(subject: &str, line: &str) -> Result<CommandLine, Failure> {
    line.parse().map_err(|error: LineError| {
        let failure = Failure::new(subject, format!("{error}\n{}", marked(line, &error)));
        match &error.hint {
            Some(hint) => failure.hint(hint),
            None => failure.hint("`etlkit spec line --help` shows examples"),
        }
    })
}

/// The line, with the position of the error marked below.
fn marked(line: &str, error: &LineError) -> String {
    let before = line.get(..error.span.start).unwrap_or_default().chars().count();
    let length = line.get(error.span.clone()).unwrap_or_default().chars().count().max(1);
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("  {line}\n  {}{}", " ".repeat(before), "^".repeat(length))
}

fn describe(out: &mut String, line: &CommandLine, events: bool) -> fmt::Result {
    writeln!(out, "{}", one_line(&line.to_string()))?;
    for action in &line.actions {
        match action {
            Action::Start(s) => session(out, "start session", s, events)?,
            Action::Create(s) => session(out, "save settings of session", s, events)?,
            Action::Update(s) => session(out, "change session", s, events)?,
            Action::Enable { session, providers, kernel } => {
                if line.tool == Tool::Plain {
                    writeln!(out, "enable providers")?;
                } else {
                    writeln!(out, "enable for session {}", one_line(session))?;
                }
                kernel_flags(out, kernel)?;
                list(out, providers, events)?;
            }
            Action::Disable { session, providers, kernel } => {
                writeln!(out, "disable for session {}", one_line(session))?;
                kernel_flags(out, kernel)?;
                for spec in providers {
                    writeln!(out, "  provider  {}", provider_text(&spec.provider))?;
                }
                if providers.is_empty() && kernel.is_empty() {
                    writeln!(out, "  provider  all")?;
                }
            }
            Action::CaptureState { session, providers } => {
                writeln!(
                    out,
                    "capture the state of the providers of session {}",
                    one_line(session)
                )?;
                list(out, providers, events)?;
            }
            Action::SystemRundown { session } => {
                writeln!(out, "capture the state of the kernel for session {}", one_line(session))?;
            }
            Action::Flush { session, file, .. } => {
                writeln!(out, "flush the buffers of session {}", one_line(session))?;
                row(out, "file", file.as_deref())?;
            }
            Action::Stop { session, .. } => writeln!(out, "stop session {}", one_line(session))?,
            Action::Query { session: Some(session), .. } => {
                writeln!(out, "query session {}", one_line(session))?;
            }
            Action::Query { session: None, .. } => writeln!(out, "query all sessions")?,
            Action::Merge { inputs, output, options } => {
                writeln!(out, "merge into {}", one_line(output))?;
                if inputs.is_empty() {
                    writeln!(out, "  from      the files of the stopped sessions")?;
                }
                for input in inputs {
                    row(out, "from", Some(input))?;
                }
                if !options.is_empty() {
                    row(out, "options", Some(&options.join(", ")))?;
                }
            }
        }
    }
    row(out, "remark", line.remark.as_deref())
}

fn row(out: &mut String, name: &str, value: Option<&str>) -> fmt::Result {
    match value {
        Some(value) => writeln!(out, "  {name:<9} {}", one_line(value)),
        None => Ok(()),
    }
}

fn session(out: &mut String, what: &str, s: &Session, events: bool) -> fmt::Result {
    writeln!(out, "{what} {}", one_line(&s.name))?;
    row(out, "file", s.file.as_deref())?;
    row(out, "buffers", buffers(s).as_deref())?;
    row(out, "mode", mode(s).as_deref())?;
    row(out, "clock", s.clock.map(clock))?;
    row(out, "flush", s.flush_seconds.map(|n| format!("every {n} s")).as_deref())?;
    kernel_flags(out, &s.kernel)?;
    if !s.stack_walk.is_empty() {
        row(out, "stacks at", Some(&s.stack_walk.join(", ")))?;
    }
    if !s.processes.is_empty() {
        row(out, "processes", Some(&numbers(&s.processes)))?;
    }
    for other in &s.others {
        row(out, &format!("-{}", other.name), Some(&other.values.join(" ")))?;
    }
    list(out, &s.providers, events)?;
    for spec in &s.removed {
        writeln!(out, "  without   {}", provider_text(&spec.provider))?;
    }
    Ok(())
}

fn kernel_flags(out: &mut String, flags: &[String]) -> fmt::Result {
    if flags.is_empty() {
        return Ok(());
    }
    row(out, "kernel", Some(&expand_kernel_flags(flags).join(", ")))
}

fn buffers(s: &Session) -> Option<String> {
    let count = match (s.min_buffers, s.max_buffers) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    };
    match (s.buffer_kb, count) {
        (Some(kb), Some(count)) => Some(format!("{kb} KB each, {count}")),
        (Some(kb), None) => Some(format!("{kb} KB each")),
        (None, count) => count,
    }
}

fn mode(s: &Session) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(s.file_mode.map(|mode| file_mode(mode).to_owned()));
    if let Some(size) = s.max_file {
        let kilobytes = etl_format::constants::LogFileMode::USE_KBYTES_FOR_SIZE.0;
        let unit = if s.modes.0 & kilobytes != 0 { "KB" } else { "MB" };
        parts.push(format!("at most {size} {unit}"));
    }
    if s.modes.0 != 0 {
        parts.push(s.modes.to_string());
    }
    if s.modes_off.0 != 0 {
        parts.push(format!("without {}", s.modes_off));
    }
    if parts.is_empty() { None } else { Some(parts.join(", ")) }
}

const fn file_mode(mode: FileMode) -> &'static str {
    match mode {
        FileMode::Sequential => "sequential",
        FileMode::Circular => "circular",
        FileMode::Append => "append",
        FileMode::NewFile => "new files",
        FileMode::Buffering => "in memory",
    }
}

const fn clock(clock: ClockType) -> &'static str {
    match clock {
        ClockType::PerfCounter => "performance counter",
        ClockType::SystemTime => "system time",
        ClockType::Cycle => "processor cycles",
    }
}

fn numbers(numbers: &[impl fmt::Display]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
    let registry = Registry::builtin();
    provider.guid(registry).and_then(|guid| registry.provider(guid))
}

fn list(out: &mut String, specs: &[ProviderSpec], events: bool) -> fmt::Result {
    specs.iter().try_for_each(|spec| provider(out, spec, events))
}

fn provider(out: &mut String, spec: &ProviderSpec, events: bool) -> fmt::Result {
    writeln!(out, "  provider  {}", provider_text(&spec.provider))?;
    let enabled = spec.enablement(Registry::builtin());
    writeln!(out, "    enables   {}", enabled_text(spec, &enabled))?;
    if spec.properties.0 != 0 {
        writeln!(out, "    with      {}", spec.properties)?;
    }
    filters(out, spec)?;
    let (Some(provider), Ok(enabled)) = (known(&spec.provider), enabled) else {
        if let Err(name) = spec.enablement(Registry::builtin()) {
            writeln!(out, "    note      unknown keyword {}", one_line(&name))?;
        }
        return Ok(());
    };
    let explained = mask::explain(TableSet::Shipped, provider, enabled.any, enabled.level);
    let all = enabled.any == 0;
    let names = if all { "all".to_owned() } else { explained.names.join(", ") };
    writeln!(out, "    keywords  {names}")?;
    if explained.unnamed != 0 && !all {
        writeln!(out, "    unnamed   {:#x}", explained.unnamed)?;
    }
    for remark in &explained.remarks {
        writeln!(out, "    note      {}", super::mask::remark(remark))?;
    }
    let raised = raised(&explained, &enabled);
    writeln!(out, "    events    {}", raised.len())?;
    if events {
        for event in raised {
            super::list::headline(out, provider, event)?;
        }
    }
    Ok(())
}

/// The mask and the level as text.
fn enabled_text(spec: &ProviderSpec, enabled: &Result<Enablement, String>) -> String {
    let mut text = match (&spec.keywords, enabled) {
        (None, _) => "all keywords".to_owned(),
        (Some(_), Ok(Enablement { any: 0, .. })) => "all keywords (0x0)".to_owned(),
        (Some(Keywords::Names(names)), Err(_)) => one_line(&names.join(", ")),
        (Some(Keywords::Names(names)), Ok(enabled)) => {
            format!("{} ({:#x})", one_line(&names.join(", ")), enabled.any)
        }
        (Some(Keywords::Mask(mask)), _) => format!("{mask:#x}"),
        (Some(Keywords::Flags(flags)), _) => format!("flags {flags:#x}"),
    };
    if spec.all != 0 {
        let _ = write!(text, " and all of {:#x}", spec.all);
    }
    match spec.level {
        None => text.push_str(" at all levels"),
        Some(0) => text.push_str(" at all levels (0)"),
        Some(level) => {
            let _ = write!(text, " at level {level}");
        }
    }
    text
}

fn filters(out: &mut String, spec: &ProviderSpec) -> fmt::Result {
    for (name, ids) in [("ids", &spec.ids), ("stacks", &spec.stack_ids)] {
        match ids {
            IdFilter::Any => {}
            IdFilter::In(ids) => writeln!(out, "    {name:<9} only {}", numbers(ids))?,
            IdFilter::Out(ids) => writeln!(out, "    {name:<9} not {}", numbers(ids))?,
        }
    }
    let scope = &spec.scope;
    if !scope.processes.is_empty() {
        writeln!(out, "    processes {}", numbers(&scope.processes))?;
    }
    for (name, values) in
        [("programs", &scope.executables), ("packages", &scope.packages), ("apps", &scope.apps)]
    {
        if !values.is_empty() {
            writeln!(out, "    {name:<9} {}", one_line(&values.join(", ")))?;
        }
    }
    Ok(())
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

fn line_json(line: &CommandLine) -> Value {
    json!({
        "tool": match line.tool { Tool::Plain => "providers", tool => tool.name() },
        "canonical": line.to_string(),
        "remark": line.remark,
        "actions": line.actions.iter().map(action_json).collect::<Vec<_>>(),
    })
}

fn action_json(action: &Action) -> Value {
    let all = |specs: &[ProviderSpec]| specs.iter().map(provider_json).collect::<Vec<_>>();
    match action {
        Action::Start(s) => session_json("start", s),
        Action::Create(s) => session_json("create", s),
        Action::Update(s) => session_json("update", s),
        Action::Enable { session, providers, kernel } => {
            json!({"action": "enable", "session": session, "providers": all(providers), "kernel": kernel})
        }
        Action::Disable { session, providers, kernel } => {
            json!({"action": "disable", "session": session, "providers": all(providers), "kernel": kernel})
        }
        Action::CaptureState { session, providers } => {
            json!({"action": "capture_state", "session": session, "providers": all(providers)})
        }
        Action::SystemRundown { session } => {
            json!({"action": "system_rundown", "session": session})
        }
        Action::Flush { session, file, direct } => {
            json!({"action": "flush", "session": session, "file": file, "direct": direct})
        }
        Action::Stop { session, direct } => {
            json!({"action": "stop", "session": session, "direct": direct})
        }
        Action::Query { session, direct } => {
            json!({"action": "query", "session": session, "direct": direct})
        }
        Action::Merge { inputs, output, options } => {
            json!({"action": "merge", "inputs": inputs, "output": output, "options": options})
        }
    }
}

const fn file_mode_code(mode: FileMode) -> &'static str {
    match mode {
        FileMode::Sequential => "sequential",
        FileMode::Circular => "circular",
        FileMode::Append => "append",
        FileMode::NewFile => "new_file",
        FileMode::Buffering => "buffering",
    }
}

const fn clock_code(clock: ClockType) -> &'static str {
    match clock {
        ClockType::PerfCounter => "qpc",
        ClockType::SystemTime => "system_time",
        ClockType::Cycle => "cpu_cycles",
    }
}

fn session_json(action: &str, s: &Session) -> Value {
    json!({
        "action": action,
        "session": s.name,
        "direct": s.direct,
        "file": s.file,
        "buffer_kb": s.buffer_kb,
        "min_buffers": s.min_buffers,
        "max_buffers": s.max_buffers,
        "file_mode": s.file_mode.map(file_mode_code),
        "max_file": s.max_file,
        "log_file_mode": s.log_file_mode().0,
        "flush_seconds": s.flush_seconds,
        "clock": s.clock.map(clock_code),
        "kernel": s.kernel,
        "stack_walk": s.stack_walk,
        "processes": s.processes,
        "others": s.others.iter().map(|o| json!({"name": o.name, "values": o.values})).collect::<Vec<_>>(),
        "providers": s.providers.iter().map(provider_json).collect::<Vec<_>>(),
        "removed": s.removed.iter().map(|spec| provider_text(&spec.provider)).collect::<Vec<_>>(),
    })
}

fn provider_json(spec: &ProviderSpec) -> Value {
    let (mut name, mut file) = (None, None);
    match &spec.provider {
        ProviderRef::Guid(_) => {}
        ProviderRef::Name(n) | ProviderRef::Hashed(n) => name = Some(n.as_str()),
        ProviderRef::File(f) => file = Some(f),
    }
    let described = known(&spec.provider);
    let enabled = spec.enablement(Registry::builtin());
    let ids = |ids: &IdFilter| match ids {
        IdFilter::Any => Value::Null,
        IdFilter::In(ids) => json!({"in": ids}),
        IdFilter::Out(ids) => json!({"out": ids}),
    };
    let explanation = described.zip(enabled.as_ref().ok()).map(|(provider, enabled)| {
        let explained = mask::explain(TableSet::Shipped, provider, enabled.any, enabled.level);
        let events = raised(&explained, enabled);
        json!({
            "keywords": explained.names,
            "unnamed": explained.unnamed,
            "remarks": explained.remarks.iter().map(super::mask::remark_json).collect::<Vec<_>>(),
            "events": events.iter().map(|e| json!({
                "id": super::list::id(e).0, "version": super::list::id(e).1, "event": e.schema.name,
            })).collect::<Vec<_>>(),
        })
    });
    json!({
        "provider": described.map(|p| p.name.as_str()).or(name),
        "provider_guid": spec.provider.guid(Registry::builtin()).map(|guid| guid.to_string()),
        "file": file,
        "match_any": enabled.as_ref().ok().map(|e| e.any),
        "match_all": spec.all,
        "level": spec.level,
        "properties": spec.properties.0,
        "property_names": spec.properties.names().0,
        "ids": ids(&spec.ids),
        "stack_ids": ids(&spec.stack_ids),
        "processes": spec.scope.processes,
        "executables": spec.scope.executables,
        "packages": spec.scope.packages,
        "apps": spec.scope.apps,
        "unknown_keyword": enabled.err(),
        "explained": explanation,
    })
}
