//! Reports providers, events and fields that were selected and that no trace has.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use etl_format::read::{Mode, Options, Order, Source, Trace};
use etl_schema::store::SchemaStore;
use etl_schema::{Field, FieldKind};
use etl_tools::filter::Filter;
use etl_tools::rows::Conditions;
use etl_tools::survey::Survey;

use super::printer::Session;
use crate::Outcome;
use crate::input::{self, Input};

/// Names that are listed as the nearest.
const NEAREST: usize = 3;

/// Says on standard error which of the selected providers, events and fields no trace has, with the
/// nearest names that the traces have. A trace from a pipe cannot be read again.
pub(super) fn report(session: &Session<'_>, paths: &mut dyn Iterator<Item = &PathBuf>) -> Outcome {
    let args = session.args;
    let selected = args.filter.providers();
    if selected.is_empty() && args.event.is_empty() && args.conditions.is_empty() {
        return Outcome::Success;
    }
    let (mut providers, mut guids, mut events, mut fields) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for path in paths.filter(|path| !input::is_stdin(path)) {
        let options = Options { mode: Mode::Salvage, ..Options::default() };
        let store = session.frame.borrow().store().clone();
        let Ok(mut input) = Input::open(path, &args.input) else { continue };
        let Ok((mut trace, _)) = input.trace(&options) else { continue };
        if !args.conditions.is_empty() {
            add_fields(&mut trace, store.clone(), &mut fields);
        }
        let Ok(survey) = Survey::of(&mut trace, store, |_| {}) else { continue };
        for provider in survey.providers {
            providers.extend(provider.provider);
            guids.insert(provider.provider_guid);
        }
        events.extend(survey.events.into_iter().map(|event| event.event));
    }
    if guids.is_empty() {
        return Outcome::Success;
    }
    let mut outcome = Outcome::Success;
    let mut missing = |what: &str, name: &str, of: &BTreeSet<String>| {
        stderr_line!("error: no event of {what} {name}{}", nearest(name, of));
        outcome = Outcome::Findings;
    };
    for name in selected {
        let filter = Filter::of_providers([name]);
        let known = filter.providers.iter().any(|guid| guids.contains(&guid.to_string()));
        if !known && !providers.iter().any(|p| p.eq_ignore_ascii_case(name)) {
            missing("provider", name, &providers);
        }
    }
    for name in &args.event {
        let is_seen = |event: &String| {
            Conditions::new(&[name], &[], None).is_ok_and(|wanted| wanted.admit_name(event))
        };
        if !events.iter().any(is_seen) {
            missing("name", name, &events);
        }
    }
    let conditions = Conditions::new(&[], &args.conditions, None).unwrap_or_default();
    for name in conditions.fields() {
        if !fields.iter().any(|field| field.eq_ignore_ascii_case(name)) {
            missing("field", name, &fields);
        }
    }
    outcome
}

/// Adds the names of the fields that the events of a trace have.
fn add_fields<S: Source>(
    trace: &mut Trace<S>,
    mut store: SchemaStore,
    fields: &mut BTreeSet<String>,
) {
    let Ok(mut records) = trace.records(Order::File) else { return };
    let mut known = HashSet::new();
    while let Ok(Some(record)) = records.next_record() {
        store.learn(&record);
        let Some((schema, _)) = store.fields(&record) else { continue };
        // Many events have the same schema.
        if known.insert((schema.provider, schema.identity, schema.name.clone())) {
            add_names(&schema.fields, "", fields);
        }
    }
}

/// Adds the names of fields, and of the members of structures with the names of these before.
fn add_names(of: &[Field], before: &str, names: &mut BTreeSet<String>) {
    for field in of {
        let name = format!("{before}{}", field.name);
        if let FieldKind::Struct(members) = &field.kind {
            add_names(members, &format!("{name}."), names);
        }
        names.insert(name);
    }
}

/// The names that differ least from one that is not there.
fn nearest(name: &str, of: &BTreeSet<String>) -> String {
    let name = name.to_lowercase();
    let distance = |other: &&String| {
        let other = other.to_lowercase();
        let contains = other.contains(&name) || name.contains(&other);
        (!contains, strsim::levenshtein(&name, &other))
    };
    let mut names: Vec<&String> = of.iter().collect();
    names.sort_by_cached_key(distance);
    names.truncate(NEAREST);
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; the nearest names: {}", names.join(", "))
    }
}
