//! Explanations of command lines as JSON.

use etl_control::controller::{
    Action, ActionExplanation, CollectedProcess, Collection, CommandLine, ProviderExplanation,
    ProviderRef, Session, Tool, UnknownName,
};
use etl_control::enable::IdFilter;
use etl_schema::tables::Registry;
use serde_json::{Value, json};

use super::super::{list as events, mask as masks};
use super::{clock, file_mode, option, provider_text};

pub(super) fn line(line: &CommandLine, actions: &[ActionExplanation<'_>]) -> Value {
    json!({
        "tool": match line.tool {
            Tool::Plain => "providers",
            Tool::Settings => "settings",
            tool => tool.name(),
        },
        "canonical": line.to_string(),
        "remark": line.remark,
        "actions": actions.iter().map(action).collect::<Vec<_>>(),
    })
}

fn action(explanation: &ActionExplanation<'_>) -> Value {
    match explanation.action {
        Action::Start(s) => session("start", s, explanation),
        Action::Create(s) => session("create", s, explanation),
        Action::Update(s) => session("update", s, explanation),
        Action::Enable {
            session, kernel, ..
        } => json!({
            "action": "enable", "session": session, "providers": providers(explanation), "kernel": kernel,
            "unknown_kernel": names(&explanation.unknown_kernel_flags),
        }),
        Action::Disable {
            session, kernel, ..
        } => json!({
            "action": "disable", "session": session, "providers": providers(explanation), "kernel": kernel,
            "unknown_kernel": names(&explanation.unknown_kernel_flags),
        }),
        Action::CaptureState { session, .. } => {
            json!({"action": "capture_state", "session": session, "providers": providers(explanation)})
        }
        Action::SystemRundown { session } => {
            json!({"action": "system_rundown", "session": session})
        }
        Action::Flush {
            session,
            file,
            direct,
        } => json!({
            "action": "flush", "session": session, "file": file, "direct": direct,
        }),
        Action::Stop { session, direct } => {
            json!({"action": "stop", "session": session, "direct": direct})
        }
        Action::Delete { session } => json!({"action": "delete", "session": session}),
        Action::Query { session, direct } => {
            json!({"action": "query", "session": session, "direct": direct})
        }
        Action::ListProviders => json!({"action": "list_providers"}),
        Action::Collect(collection) => collect(collection, explanation),
        Action::Decode {
            files,
            sessions,
            output,
            options,
        } => json!({
            "action": "decode", "files": files, "sessions": sessions, "output": output,
            "options": options.iter().map(option).collect::<Vec<_>>(),
        }),
        Action::Merge {
            inputs,
            output,
            options,
        } => json!({
            "action": "merge", "inputs": inputs, "output": output, "options": options,
        }),
    }
}

/// A recording of EventPipe.
fn collect(collection: &Collection, explanation: &ActionExplanation<'_>) -> Value {
    let process = match &collection.process {
        CollectedProcess::Id(id) => json!({"id": id}),
        CollectedProcess::Name(name) => json!({"name": name}),
        CollectedProcess::Port(port) => json!({"port": port}),
        CollectedProcess::Command(command) => json!({"command": command}),
        _ => json!({}),
    };
    json!({
        "action": "collect",
        "process": process,
        "has_kernel": collection.has_kernel,
        "profiles": collection.profiles,
        "clr_events": collection.clr_events,
        "clr_level": collection.clr_level,
        "rundown_keywords": collection.rundown_keywords(),
        "file": collection.file,
        "buffer_mb": collection.buffer_mb,
        "format": collection.format,
        "duration": collection.duration,
        "others": collection.others.iter().map(option).collect::<Vec<_>>(),
        "providers": providers(explanation),
    })
}

fn session(action: &str, session: &Session, explanation: &ActionExplanation<'_>) -> Value {
    let others = session
        .others
        .iter()
        .map(|o| json!({"name": o.name, "values": o.values}));
    let removed = session
        .removed
        .iter()
        .map(|spec| provider_text(&spec.provider));
    json!({
        "action": action,
        "session": session.name,
        "direct": session.direct,
        "file": session.file,
        "buffer_kb": session.buffer_kb,
        "min_buffers": session.min_buffers,
        "max_buffers": session.max_buffers,
        "file_mode": session.file_mode.map(|mode| file_mode(mode).json),
        "max_file": session.max_file,
        "log_file_mode": session.log_file_mode().0,
        "flush_seconds": session.flush_seconds,
        "clock": session.clock.map(|kind| clock(kind).json),
        "kernel": session.kernel,
        "unknown_kernel": names(&explanation.unknown_kernel_flags),
        "stack_walk": session.stack_walk,
        "unknown_stack_walk": names(&explanation.unknown_stack_events),
        "processes": session.processes,
        "others": others.collect::<Vec<_>>(),
        "providers": providers(explanation),
        "removed": removed.collect::<Vec<_>>(),
    })
}

fn names<'n>(unknown: &[UnknownName<'n>]) -> Vec<&'n str> {
    unknown.iter().map(|unknown| unknown.name).collect()
}

fn providers(explanation: &ActionExplanation<'_>) -> Vec<Value> {
    explanation.providers.iter().map(provider).collect()
}

fn provider(explanation: &ProviderExplanation<'_>) -> Value {
    let spec = explanation.spec;
    let name = match &spec.provider {
        ProviderRef::Name(name) | ProviderRef::Hashed(name) => Some(name.as_str()),
        ProviderRef::Guid(_) | ProviderRef::File(_) => None,
    };
    let file = match &spec.provider {
        ProviderRef::File(file) => Some(file),
        _ => None,
    };
    json!({
        "provider": explanation.provider.map(|p| p.name.as_str()).or(name),
        "provider_guid": spec.provider.guid(Registry::builtin()).map(|guid| guid.to_string()),
        "file": file,
        "match_any": explanation.enablement.as_ref().map(|e| e.any),
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
        "arguments": spec.arguments,
        "unknown_provider": explanation.unknown_provider.as_ref().map(|unknown| unknown.name),
        "unknown_keyword": explanation.unknown_keyword.as_ref().map(|unknown| unknown.name),
        "explained": selected(explanation),
    })
}

/// The keywords that are enabled, and the events that they select.
fn selected(explanation: &ProviderExplanation<'_>) -> Option<Value> {
    let mask = explanation.mask.as_ref()?;
    let events = explanation.events.iter().map(|event| {
        let id = events::id(event);
        json!({"id": id.number, "version": id.version, "event": event.schema.name})
    });
    Some(json!({
        "keywords": mask.names,
        "unnamed": mask.unnamed,
        "remarks": mask.remarks.iter().map(masks::remark_json).collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
    }))
}

fn ids(filter: &IdFilter) -> Value {
    match filter {
        IdFilter::Any => Value::Null,
        IdFilter::In(ids) => json!({"in": ids}),
        IdFilter::Out(ids) => json!({"out": ids}),
    }
}
