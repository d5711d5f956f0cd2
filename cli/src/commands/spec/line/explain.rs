//! Explains command lines, as text and as JSON.

use std::collections::BTreeSet;
use std::fmt::Display;

use etl_control::Error;
use etl_control::controller::{
    Action, CommandLine, Keywords, ProviderRef, ProviderSpec, Session, Tool, expand_kernel_flags,
    kernel_flag_names, kernel_groups, stack_events,
};
use etl_control::enable::{Enablement, IdFilter};
use etl_control::mask;
use etl_format::constants::LogFileMode;
use etl_schema::tables::{Registry, TableSet};
use serde_json::{Value, json};

use super::super::{Printed, list as events, mask as masks, nearest_provider};
use super::{clock, file_mode, known, provider_text, raised};
use crate::escape::one_line;
use crate::missing::nearest;
use crate::output::text;

/// Indentation of what belongs to an action, and of what belongs to a provider.
const ROW: &str = "  ";
const PROVIDER_ROW: &str = "    ";

/// A line; `with_events` also lists the events of each provider.
pub(super) fn explain(line: &CommandLine, with_events: bool) -> Printed {
    let mut out = format!("{}\n", one_line(&line.to_string()));
    let mut actions = Vec::new();
    for action in &line.actions {
        let (text, json) = explain_action(action, line.tool, with_events);
        out.push_str(&text);
        actions.push(json);
    }
    some(&mut out, "remark", line.remark.as_deref());
    let json = json!({
        "tool": match line.tool { Tool::Plain => "providers", tool => tool.name() },
        "canonical": line.to_string(),
        "remark": line.remark,
        "actions": actions,
    });
    (out, json)
}

fn explain_action(action: &Action, tool: Tool, with_events: bool) -> Printed {
    let headline = |what: &str, session: &str| format!("{what} session {}\n", one_line(session));
    match action {
        Action::Start(s) => session(s, tool, "start", "start session", with_events),
        Action::Create(s) => session(s, tool, "create", "save settings of session", with_events),
        Action::Update(s) => session(s, tool, "update", "change session", with_events),
        Action::Enable { session, providers, kernel } => {
            let mut out = match tool {
                Tool::Plain => "enable providers\n".to_owned(),
                _ => headline("enable for", session),
            };
            let unknown = list_kernel(&mut out, tool, kernel);
            let (listed, providers) = list_providers(providers, with_events);
            let json = json!({
                "action": "enable", "session": session, "providers": providers, "kernel": kernel,
                "unknown_kernel": unknown,
            });
            (out + &listed, json)
        }
        Action::Disable { session, providers, kernel } => {
            let mut out = headline("disable for", session);
            let unknown = list_kernel(&mut out, tool, kernel);
            for spec in providers {
                row(&mut out, ROW, "provider", provider_text(&spec.provider));
            }
            if providers.is_empty() && kernel.is_empty() {
                row(&mut out, ROW, "provider", "all");
            }
            let (_, providers) = list_providers(providers, false);
            let json = json!({
                "action": "disable", "session": session, "providers": providers, "kernel": kernel,
                "unknown_kernel": unknown,
            });
            (out, json)
        }
        Action::CaptureState { session, providers } => {
            let (listed, providers) = list_providers(providers, with_events);
            let out = headline("capture the state of the providers of", session) + &listed;
            (out, json!({"action": "capture_state", "session": session, "providers": providers}))
        }
        Action::SystemRundown { session } => (
            headline("capture the state of the kernel for", session),
            json!({"action": "system_rundown", "session": session}),
        ),
        Action::Flush { session, file, direct } => {
            let mut out = headline("flush the buffers of", session);
            some(&mut out, "file", file.as_deref());
            let json = json!({
                "action": "flush", "session": session, "file": file, "direct": direct,
            });
            (out, json)
        }
        Action::Stop { session, direct } => (
            headline("stop", session),
            json!({"action": "stop", "session": session, "direct": direct}),
        ),
        Action::Delete { session } => (
            headline("delete the saved settings of", session),
            json!({"action": "delete", "session": session}),
        ),
        Action::Query { session, direct } => {
            let out = match session {
                Some(session) => headline("query", session),
                None => "query all sessions\n".to_owned(),
            };
            (out, json!({"action": "query", "session": session, "direct": direct}))
        }
        Action::ListProviders => {
            ("list the registered providers\n".to_owned(), json!({"action": "list_providers"}))
        }
        Action::Decode { files, sessions, output, options } => {
            let mut out = "decode\n".to_owned();
            files.iter().for_each(|file| row(&mut out, ROW, "from", file));
            sessions.iter().for_each(|name| row(&mut out, ROW, "session", name));
            some(&mut out, "into", output.as_deref());
            let options: Vec<String> = options
                .iter()
                .map(|o| format!("-{} {}", o.name, o.values.join(" ")).trim_end().to_owned())
                .collect();
            list(&mut out, ROW, "options", &options);
            let json = json!({
                "action": "decode", "files": files, "sessions": sessions, "output": output,
                "options": options,
            });
            (out, json)
        }
        Action::Merge { inputs, output, options } => {
            let mut out = format!("merge into {}\n", one_line(output));
            if inputs.is_empty() {
                row(&mut out, ROW, "from", "the files of the stopped sessions");
            }
            inputs.iter().for_each(|input| row(&mut out, ROW, "from", input));
            list(&mut out, ROW, "options", options);
            let json = json!({
                "action": "merge", "inputs": inputs, "output": output, "options": options,
            });
            (out, json)
        }
    }
}

fn row(out: &mut String, indent: &str, name: &str, value: impl Display) {
    out.push_str(&format!("{indent}{name:<9} {}\n", one_line(&value.to_string())));
}

/// A row of an action, if it has the value.
fn some(out: &mut String, name: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        row(out, ROW, name, value);
    }
}

/// A row with several values, if there are any.
fn list(out: &mut String, indent: &str, name: &str, values: &[impl Display]) {
    if !values.is_empty() {
        row(out, indent, name, joined(values));
    }
}

fn joined(values: &[impl Display]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A note about a name that is not known, with the nearest ones that are.
fn unknown(out: &mut String, indent: &str, what: &str, name: &str, known: BTreeSet<String>) {
    let nearest = nearest(name, &known);
    row(out, indent, "note", format!("unknown {what} {name}{nearest}"));
}

fn owned<'n>(names: impl Iterator<Item = &'n str>) -> BTreeSet<String> {
    names.map(str::to_owned).collect()
}

/// The events of the kernel that get stacks, and a note about each that is not known. Returns the
/// latter.
fn list_stacks<'s>(out: &mut String, tool: Tool, events: &'s [String]) -> Vec<&'s str> {
    list(out, ROW, "stacks at", events);
    let is_known = |event: &str| {
        // Hooks, and files that list events.
        event.starts_with("0x")
            || event.starts_with('@')
            || stack_events().any(|known| known.eq_ignore_ascii_case(event))
    };
    let events = events.iter().map(String::as_str);
    let others: Vec<&str> = events.filter(|e| tool == Tool::Xperf && !is_known(e)).collect();
    for event in &others {
        unknown(out, ROW, "event of -stackwalk", event, owned(stack_events()));
    }
    others
}

/// The flags of the kernel, and a note about each that is not known. Returns those.
fn list_kernel<'f>(out: &mut String, tool: Tool, flags: &'f [String]) -> Vec<&'f str> {
    let mut flags = expand_kernel_flags(flags);
    list(out, ROW, "kernel", &flags);
    // tracelog has switches in place of flags, which are checked when its line is read.
    let is_known = |flag: &str| tool == Tool::Tracelog || kernel_groups(&[flag.to_owned()]).is_ok();
    flags.retain(|flag| !is_known(flag));
    for flag in &flags {
        unknown(out, ROW, "kernel flag", flag, owned(kernel_flag_names()));
    }
    flags
}

fn session(s: &Session, tool: Tool, action: &str, what: &str, with_events: bool) -> Printed {
    let mut out = format!("{what} {}\n", one_line(&s.name));
    some(&mut out, "file", s.file.as_deref());
    some(&mut out, "buffers", buffers(s));
    some(&mut out, "mode", mode(s));
    some(&mut out, "clock", s.clock.map(|kind| clock(kind).1));
    some(&mut out, "flush", s.flush_seconds.map(|n| format!("every {n} s")));
    let unknown_kernel = list_kernel(&mut out, tool, &s.kernel);
    let unknown_stack_walk = list_stacks(&mut out, tool, &s.stack_walk);
    list(&mut out, ROW, "processes", &s.processes);
    for other in &s.others {
        row(&mut out, ROW, &format!("-{}", other.name), other.values.join(" "));
    }
    let (listed, providers) = list_providers(&s.providers, with_events);
    out.push_str(&listed);
    let removed: Vec<_> = s.removed.iter().map(|spec| provider_text(&spec.provider)).collect();
    removed.iter().for_each(|provider| row(&mut out, ROW, "without", provider));
    let json = json!({
        "action": action,
        "session": s.name,
        "direct": s.direct,
        "file": s.file,
        "buffer_kb": s.buffer_kb,
        "min_buffers": s.min_buffers,
        "max_buffers": s.max_buffers,
        "file_mode": s.file_mode.map(|mode| file_mode(mode).0),
        "max_file": s.max_file,
        "log_file_mode": s.log_file_mode().0,
        "flush_seconds": s.flush_seconds,
        "clock": s.clock.map(|kind| clock(kind).0),
        "kernel": s.kernel,
        "unknown_kernel": unknown_kernel,
        "stack_walk": s.stack_walk,
        "unknown_stack_walk": unknown_stack_walk,
        "processes": s.processes,
        "others": s.others.iter().map(|o| json!({"name": o.name, "values": o.values})).collect::<Vec<_>>(),
        "providers": providers,
        "removed": removed,
    });
    (out, json)
}

fn buffers(s: &Session) -> Option<String> {
    let size = s.buffer_kb.map(|kb| format!("{kb} KB each"));
    let count = match (s.min_buffers, s.max_buffers) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    };
    let parts: Vec<_> = size.into_iter().chain(count).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn mode(s: &Session) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(s.file_mode.map(|mode| file_mode(mode).1.to_owned()));
    if let Some(size) = s.max_file {
        let unit = if s.modes.has(LogFileMode::USE_KBYTES_FOR_SIZE) { "KB" } else { "MB" };
        parts.push(format!("at most {size} {unit}"));
    }
    if s.modes.0 != 0 {
        parts.push(s.modes.to_string());
    }
    if s.modes_off.0 != 0 {
        parts.push(format!("without {}", s.modes_off));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn list_providers(specs: &[ProviderSpec], with_events: bool) -> (String, Vec<Value>) {
    let explained = specs.iter().map(|spec| provider(spec, with_events));
    let (texts, json): (Vec<String>, Vec<Value>) = explained.unzip();
    (texts.concat(), json)
}

fn provider(spec: &ProviderSpec, with_events: bool) -> Printed {
    let described = known(&spec.provider);
    let enabled = spec.enablement(Registry::builtin());
    let unknown_keyword = match &enabled {
        Err(Error::UnknownKeyword(name)) => Some(name),
        _ => None,
    };
    let unknown_provider = match &spec.provider {
        ProviderRef::Name(name) if spec.provider.guid(Registry::builtin()).is_none() => Some(name),
        _ => None,
    };
    let mut out = String::new();
    row(&mut out, ROW, "provider", provider_text(&spec.provider));
    if let Some(name) = unknown_provider {
        let nearest = nearest_provider(name);
        row(&mut out, PROVIDER_ROW, "note", format!("no table has a provider {name}{nearest}"));
    }
    row(&mut out, PROVIDER_ROW, "enables", enabled_text(spec, &enabled));
    if spec.properties.0 != 0 {
        row(&mut out, PROVIDER_ROW, "with", spec.properties);
    }
    filters(&mut out, spec);
    if let Some(name) = unknown_keyword {
        let known = described.map_or(&[][..], |provider| &provider.keywords);
        let names = owned(known.iter().map(|keyword| keyword.name.as_str()));
        unknown(&mut out, PROVIDER_ROW, "keyword", name, names);
    }
    let explanation = described.zip(enabled.as_ref().ok()).map(|(provider, enabled)| {
        let explained = mask::explain(TableSet::Shipped, provider, enabled.any, enabled.level);
        let raised = raised(&explained, enabled);
        let all = enabled.any == 0;
        let names = if all { "all".to_owned() } else { explained.names.join(", ") };
        row(&mut out, PROVIDER_ROW, "keywords", names);
        if explained.unnamed != 0 && !all {
            row(&mut out, PROVIDER_ROW, "unnamed", format!("{:#x}", explained.unnamed));
        }
        for remark in &explained.remarks {
            row(&mut out, PROVIDER_ROW, "note", masks::remark(remark));
        }
        row(&mut out, PROVIDER_ROW, "events", raised.len());
        for event in raised.iter().filter(|_| with_events) {
            out.push_str(&text(|out| events::headline(out, provider, event)));
        }
        json!({
            "keywords": explained.names,
            "unnamed": explained.unnamed,
            "remarks": explained.remarks.iter().map(masks::remark_json).collect::<Vec<_>>(),
            "events": raised.iter().map(|e| json!({
                "id": events::id(e).0, "version": events::id(e).1, "event": e.schema.name,
            })).collect::<Vec<_>>(),
        })
    });
    let (name, file) = match &spec.provider {
        ProviderRef::Guid(_) => (None, None),
        ProviderRef::Name(name) | ProviderRef::Hashed(name) => (Some(name.as_str()), None),
        ProviderRef::File(file) => (None, Some(file)),
    };
    let ids = |ids: &IdFilter| match ids {
        IdFilter::Any => Value::Null,
        IdFilter::In(ids) => json!({"in": ids}),
        IdFilter::Out(ids) => json!({"out": ids}),
    };
    let json = json!({
        "provider": described.map(|p| p.name.as_str()).or(name),
        "provider_guid": spec.provider.guid(Registry::builtin()).map(|guid| guid.to_string()),
        "file": file,
        "match_any": enabled.as_ref().ok().map(|e| e.any),
        "match_all": spec.all,
        "level": spec.level,
        "properties": spec.properties.0,
        "property_names": spec.properties.names(),
        "ids": ids(&spec.ids),
        "stack_ids": ids(&spec.stack_ids),
        "processes": spec.scope.processes,
        "executables": spec.scope.executables,
        "packages": spec.scope.packages,
        "apps": spec.scope.apps,
        "unknown_provider": unknown_provider,
        "unknown_keyword": unknown_keyword,
        "explained": explanation,
    });
    (out, json)
}

/// The mask and the level as text.
fn enabled_text(spec: &ProviderSpec, enabled: &Result<Enablement, Error>) -> String {
    let keywords = match (&spec.keywords, enabled) {
        (None, _) => "all keywords".to_owned(),
        (Some(_), Ok(Enablement { any: 0, .. })) => "all keywords (0x0)".to_owned(),
        (Some(Keywords::Names(names)), Err(_)) => names.join(", "),
        (Some(Keywords::Names(names)), Ok(enabled)) => {
            format!("{} ({:#x})", names.join(", "), enabled.any)
        }
        (Some(Keywords::Mask(mask)), _) => format!("{mask:#x}"),
        (Some(Keywords::Flags(flags)), _) => format!("flags {flags:#x}"),
    };
    let all = if spec.all == 0 { String::new() } else { format!(" and all of {:#x}", spec.all) };
    let level = match spec.level {
        None => "at all levels".to_owned(),
        Some(0) => "at all levels (0)".to_owned(),
        Some(level) => format!("at level {level}"),
    };
    format!("{keywords}{all} {level}")
}

fn filters(out: &mut String, spec: &ProviderSpec) {
    for (name, ids) in [("ids", &spec.ids), ("stacks", &spec.stack_ids)] {
        match ids {
            IdFilter::Any => {}
            IdFilter::In(ids) => {
                row(out, PROVIDER_ROW, name, format!("only {}", joined(ids)));
            }
            IdFilter::Out(ids) => row(out, PROVIDER_ROW, name, format!("not {}", joined(ids))),
        }
    }
    let scope = &spec.scope;
    list(out, PROVIDER_ROW, "processes", &scope.processes);
    list(out, PROVIDER_ROW, "programs", &scope.executables);
    list(out, PROVIDER_ROW, "packages", &scope.packages);
    list(out, PROVIDER_ROW, "apps", &scope.apps);
}
