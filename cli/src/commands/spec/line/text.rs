//! The text of `etlkit spec line`.

use std::fmt::{self, Write};

use etl_control::Error;
use etl_control::controller::{
    Action, CommandLine, Keywords, ProviderSpec, Session, Tool, expand_kernel_flags,
};
use etl_control::enable::{Enablement, IdFilter};
use etl_control::mask;
use etl_schema::tables::{Registry, TableSet};

use super::super::{list as events, mask as masks};
use super::{clock, file_mode, known, provider_text, raised};
use crate::escape::one_line;

pub(super) fn describe(out: &mut String, line: &CommandLine, events: bool) -> fmt::Result {
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
    row(out, "clock", s.clock.map(|kind| clock(kind).1))?;
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
    parts.extend(s.file_mode.map(|mode| file_mode(mode).1.to_owned()));
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

fn numbers(numbers: &[impl fmt::Display]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
        if let Err(Error::UnknownKeyword(name)) = spec.enablement(Registry::builtin()) {
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
        writeln!(out, "    note      {}", masks::remark(remark))?;
    }
    let raised = raised(&explained, &enabled);
    writeln!(out, "    events    {}", raised.len())?;
    if events {
        for event in raised {
            events::headline(out, provider, event)?;
        }
    }
    Ok(())
}

/// The mask and the level as text.
fn enabled_text(spec: &ProviderSpec, enabled: &Result<Enablement, Error>) -> String {
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
