//! The JSON of `etlkit spec line`.

use etl_control::Error;
use etl_control::controller::{Action, CommandLine, ProviderRef, ProviderSpec, Session, Tool};
use etl_control::enable::IdFilter;
use etl_control::mask;
use etl_schema::tables::{Registry, TableSet};
use serde_json::{Value, json};

use super::super::{list as events, mask as masks};
use super::{clock, file_mode, known, provider_text, raised};

pub(super) fn line_json(line: &CommandLine) -> Value {
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

fn session_json(action: &str, s: &Session) -> Value {
    json!({
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
    let unknown_keyword = match &enabled {
        Err(Error::UnknownKeyword(name)) => Some(name.clone()),
        _ => None,
    };
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
            "remarks": explained.remarks.iter().map(masks::remark_json).collect::<Vec<_>>(),
            "events": events.iter().map(|e| json!({
                "id": events::id(e).0, "version": events::id(e).1, "event": e.schema.name,
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
        "unknown_keyword": unknown_keyword,
        "explained": explanation,
    })
}
