//! Explanations of command lines as text.

use std::fmt::Display;

use etl_control::controller::{
    Action, ActionExplanation, CollectedProcess, Collection, CommandLine, Keywords,
    ProviderExplanation, Session, Tool, UnknownName,
};
use etl_control::enable::{Enablement, IdFilter, Variant};
use etl_format::constants::LogFileMode;
use etl_schema::clr::keyword::{JIT, LOADER, NGEN};

use super::super::{list as events, mask as masks};
use super::{clock, file_mode, option, provider_text};
use crate::escape::one_line;
use crate::missing::nearest;
use crate::output::text;

/// Indentation of the rows of an action.
const ROW: &str = "  ";
/// Indentation of the rows of a provider.
const PROVIDER_ROW: &str = "    ";

/// A line with its actions.
pub(super) fn line(
    line: &CommandLine,
    actions: &[ActionExplanation<'_>],
    list_events: ListEvents,
) -> String {
    let mut out = format!("{}\n", one_line(&line.to_string()));
    for explanation in actions {
        action(&mut out, explanation, line.tool, list_events);
    }
    some(&mut out, "remark", line.remark.as_deref());
    out
}

/// Whether the events of each provider are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEvents {
    Yes,
    No,
}

fn action(
    out: &mut String,
    explanation: &ActionExplanation<'_>,
    tool: Tool,
    list_events: ListEvents,
) {
    match explanation.action {
        Action::Start(s) => session(out, "start session", s, explanation, list_events),
        Action::Create(s) => {
            session(out, "save settings of session", s, explanation, list_events);
        }
        Action::Update(s) => session(out, "change session", s, explanation, list_events),
        Action::Enable { session, .. } => {
            if tool == Tool::Plain {
                out.push_str("enable providers\n");
            } else {
                headline(out, "enable for session", session);
            }
            kernel_flags(out, explanation);
            providers(out, explanation, list_events);
        }
        Action::Disable {
            session,
            providers,
            kernel,
        } => {
            headline(out, "disable for session", session);
            kernel_flags(out, explanation);
            for spec in providers {
                row(out, ROW, "provider", provider_text(&spec.provider));
            }
            if providers.is_empty() && kernel.is_empty() {
                row(out, ROW, "provider", "all");
            }
        }
        Action::CaptureState { session, .. } => {
            headline(
                out,
                "capture the state of the providers of session",
                session,
            );
            providers(out, explanation, list_events);
        }
        Action::SystemRundown { session } => {
            headline(out, "capture the state of the kernel for session", session);
        }
        Action::Flush { session, file, .. } => {
            headline(out, "flush the buffers of session", session);
            some(out, "file", file.as_deref());
        }
        Action::Stop { session, .. } => headline(out, "stop session", session),
        Action::Delete { session } => {
            headline(out, "delete the saved settings of session", session);
        }
        Action::Query { session, .. } => match session {
            Some(session) => headline(out, "query session", session),
            None => out.push_str("query all sessions\n"),
        },
        Action::ListProviders => out.push_str("list the registered providers\n"),
        Action::Collect(collection) => collect(out, collection, explanation, list_events),
        Action::Decode { .. } | Action::Merge { .. } => file_action(out, explanation.action),
    }
}

/// An action on files.
fn file_action(out: &mut String, action: &Action) {
    match action {
        Action::Decode {
            files,
            sessions,
            output,
            options,
        } => {
            out.push_str("decode\n");
            rows(out, "from", files);
            rows(out, "session", sessions);
            some(out, "into", output.as_deref());
            list(
                out,
                ROW,
                "options",
                &options.iter().map(option).collect::<Vec<_>>(),
            );
        }
        Action::Merge {
            inputs,
            output,
            options,
        } => {
            headline(out, "merge into", output);
            if inputs.is_empty() {
                row(out, ROW, "from", "the files of the stopped sessions");
            }
            rows(out, "from", inputs);
            list(out, ROW, "options", options);
        }
        _ => {}
    }
}

/// A recording of EventPipe.
fn collect(
    out: &mut String,
    collection: &Collection,
    explanation: &ActionExplanation<'_>,
    list_events: ListEvents,
) {
    out.push_str(if collection.has_kernel {
        "record .NET processes and the Linux kernel\n"
    } else {
        "record an EventPipe session of .NET\n"
    });
    match &collection.process {
        CollectedProcess::Id(id) => row(out, ROW, "process", id),
        CollectedProcess::Name(name) => row(out, ROW, "process", name),
        CollectedProcess::Port(port) => row(out, ROW, "port", port),
        CollectedProcess::Command(command) => row(out, ROW, "starts", command.join(" ")),
        _ if collection.has_kernel => row(out, ROW, "process", "all"),
        _ => {}
    }
    some(out, "file", collection.file.as_deref());
    some(out, "format", collection.format);
    let buffer = collection.buffer_mb.map(|mb| format!("{mb} MB"));
    some(out, "buffer", buffer);
    some(out, "lasts", collection.duration.as_deref());
    list(out, ROW, "profiles", &collection.profiles);
    list(out, ROW, "clrevents", &collection.clr_events);
    if collection.ignores_clr_events() {
        let note = "--clrevents has no effect: a provider or a profile enables the runtime";
        row(out, ROW, "note", note);
    }
    if !collection.providers.is_empty() && !collection.has_kernel {
        row(out, ROW, "rundown", rundown(collection));
    }
    for other in &collection.others {
        row(out, ROW, &other.name, other.values.join(" "));
    }
    providers(out, explanation, list_events);
    if collection.providers.is_empty() && !collection.has_kernel {
        row(out, ROW, "note", "nothing is recorded");
    }
}

/// What the runtime lists when the session stops.
fn rundown(collection: &Collection) -> String {
    let Some(keywords) = collection.rundown_keywords() else {
        return "none: methods from before the recording have no names".to_owned();
    };
    let mut text = format!("when the session stops ({keywords:#x})");
    if keywords & (LOADER | JIT | NGEN) == 0 {
        text.push_str(", without methods: they have no names");
    }
    text
}

fn headline(out: &mut String, what: &str, name: &str) {
    out.push_str(&format!("{what} {}\n", one_line(name)));
}

fn row(out: &mut String, indent: &str, name: &str, value: impl Display) {
    out.push_str(&format!(
        "{indent}{name:<9} {}\n",
        one_line(&value.to_string())
    ));
}

/// A row of an action for each value.
fn rows(out: &mut String, name: &str, values: &[String]) {
    for value in values {
        row(out, ROW, name, value);
    }
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
    values
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A note about an unknown name.
fn unknown(out: &mut String, indent: &str, what: &str, unknown: &UnknownName<'_>) {
    let nearest = nearest(&unknown.nearest);
    row(
        out,
        indent,
        "note",
        format!("{what} {}{nearest}", unknown.name),
    );
}

fn kernel_flags(out: &mut String, explanation: &ActionExplanation<'_>) {
    list(out, ROW, "kernel", &explanation.kernel_flags);
    for flag in &explanation.unknown_kernel_flags {
        unknown(out, ROW, "unknown kernel flag", flag);
    }
}

fn session(
    out: &mut String,
    what: &str,
    session: &Session,
    explanation: &ActionExplanation<'_>,
    list_events: ListEvents,
) {
    headline(out, what, &session.name);
    some(out, "file", session.file.as_deref());
    some(out, "buffers", buffers(session));
    some(out, "mode", mode(session));
    some(out, "clock", session.clock.map(|kind| clock(kind).text));
    some(
        out,
        "flush",
        session.flush_seconds.map(|n| format!("every {n} s")),
    );
    kernel_flags(out, explanation);
    list(out, ROW, "stacks at", &session.stack_walk);
    for event in &explanation.unknown_stack_events {
        unknown(out, ROW, "unknown event of -stackwalk", event);
    }
    list(out, ROW, "processes", &session.processes);
    for other in &session.others {
        row(
            out,
            ROW,
            &format!("-{}", other.name),
            other.values.join(" "),
        );
    }
    providers(out, explanation, list_events);
    for spec in &session.removed {
        row(out, ROW, "without", provider_text(&spec.provider));
    }
}

fn buffers(session: &Session) -> Option<String> {
    let size = session.buffer_kb.map(|kb| format!("{kb} KB each"));
    let count = match (session.min_buffers, session.max_buffers) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    };
    match (size, count) {
        (Some(size), Some(count)) => Some(format!("{size}, {count}")),
        (size, count) => size.or(count),
    }
}

fn mode(session: &Session) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(mode) = session.file_mode {
        parts.push(file_mode(mode).text.to_owned());
    }
    if let Some(size) = session.max_file {
        let unit = if session.modes.has(LogFileMode::USE_KBYTES_FOR_SIZE) {
            "KB"
        } else {
            "MB"
        };
        parts.push(format!("at most {size} {unit}"));
    }
    if session.modes.0 != 0 {
        parts.push(session.modes.to_string());
    }
    if session.modes_off.0 != 0 {
        parts.push(format!("without {}", session.modes_off));
    }
    if parts.is_empty() {
        None
    } else {
        Some(parts.join(", "))
    }
}

fn providers(out: &mut String, explanation: &ActionExplanation<'_>, list_events: ListEvents) {
    for explanation in &explanation.providers {
        provider(out, explanation, list_events);
    }
}

fn provider(out: &mut String, explanation: &ProviderExplanation<'_>, list_events: ListEvents) {
    let spec = explanation.spec;
    row(out, ROW, "provider", provider_text(&spec.provider));
    if let Some(name) = &explanation.unknown_provider {
        unknown(out, PROVIDER_ROW, "no table has a provider", name);
    }
    row(out, PROVIDER_ROW, "enables", enabled(explanation));
    if spec.properties.0 != 0 {
        row(out, PROVIDER_ROW, "with", spec.properties);
    }
    if !spec.arguments.is_empty() {
        row(out, PROVIDER_ROW, "arguments", &spec.arguments);
    }
    filter(out, "ids", &spec.ids);
    filter(out, "stacks", &spec.stack_ids);
    list(out, PROVIDER_ROW, "processes", &spec.scope.processes);
    list(out, PROVIDER_ROW, "programs", &spec.scope.executables);
    list(out, PROVIDER_ROW, "packages", &spec.scope.packages);
    list(out, PROVIDER_ROW, "apps", &spec.scope.apps);
    if let Some(keyword) = &explanation.unknown_keyword {
        unknown(out, PROVIDER_ROW, "unknown keyword", keyword);
    }
    if let Some(enablement) = &explanation.enablement {
        selected(out, explanation, enablement, list_events);
    }
}

/// The keywords that are enabled, and the events that they select.
fn selected(
    out: &mut String,
    explanation: &ProviderExplanation<'_>,
    enablement: &Enablement,
    list_events: ListEvents,
) {
    if is_without_keywords(enablement) && explanation.provider.is_some() {
        row(out, PROVIDER_ROW, "keywords", "none");
        row(out, PROVIDER_ROW, "events", explanation.events.len());
    }
    let Some(mask) = &explanation.mask else {
        return;
    };
    if enablement.any == 0 {
        row(out, PROVIDER_ROW, "keywords", "all");
    } else {
        row(out, PROVIDER_ROW, "keywords", mask.names.join(", "));
        if mask.unnamed != 0 {
            row(out, PROVIDER_ROW, "unnamed", format!("{:#x}", mask.unnamed));
        }
    }
    for remark in &mask.remarks {
        row(out, PROVIDER_ROW, "note", masks::remark(remark));
    }
    row(out, PROVIDER_ROW, "events", explanation.events.len());
    if list_events == ListEvents::Yes
        && let Some(provider) = explanation.provider
    {
        for event in &explanation.events {
            out.push_str(&text(|out| events::headline(out, provider, event)));
        }
    }
}

/// Whether a mask of EventPipe requests only events without keyword.
fn is_without_keywords(enablement: &Enablement) -> bool {
    enablement.variant == Variant::EventPipe && enablement.any == 0
}

/// The mask and the level.
fn enabled(explanation: &ProviderExplanation<'_>) -> String {
    let spec = explanation.spec;
    let keywords = match (&spec.keywords, &explanation.enablement) {
        (None, _) => "all keywords".to_owned(),
        (Some(_), Some(enablement)) if is_without_keywords(enablement) => {
            "events without keyword (0x0)".to_owned()
        }
        (Some(_), Some(Enablement { any: 0, .. })) => "all keywords (0x0)".to_owned(),
        (Some(Keywords::Names(names)), None) => names.join(", "),
        (Some(Keywords::Names(names)), Some(enablement)) => {
            format!("{} ({:#x})", names.join(", "), enablement.any)
        }
        (Some(Keywords::Mask(mask)), _) => format!("{mask:#x}"),
        (Some(Keywords::Flags(flags)), _) => format!("flags {flags:#x}"),
    };
    let all = if spec.all == 0 {
        String::new()
    } else {
        format!(" and all of {:#x}", spec.all)
    };
    let level = match spec.level {
        None => "at all levels".to_owned(),
        Some(0) => "at all levels (0)".to_owned(),
        Some(level) => format!("at level {level}"),
    };
    format!("{keywords}{all} {level}")
}

fn filter(out: &mut String, name: &str, ids: &IdFilter) {
    match ids {
        IdFilter::Any => {}
        IdFilter::In(ids) => row(out, PROVIDER_ROW, name, format!("only {}", joined(ids))),
        IdFilter::Out(ids) => row(out, PROVIDER_ROW, name, format!("not {}", joined(ids))),
    }
}
