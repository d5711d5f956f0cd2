//! Names that were selected and that no trace has, with the nearest ones that there are.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use etl_control::nearest_names;
use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_events::schemas;
use etl_events::survey::Survey;
use etl_format::read::{Options, Order, Source, Trace};
use etl_schema::store::SchemaStore;
use etl_schema::{Field, FieldKind};

use crate::Outcome;
use crate::input::{self, Input, InputArgs};

/// What a user selects by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    pub providers: &'a [String],
    pub events: &'a [String],
    pub conditions: &'a [String],
}

impl Selection<'_> {
    /// Says on standard error which of the providers, events and fields no trace has, with the
    /// nearest names that the traces have. A trace from a pipe cannot be read again.
    pub fn report_missing<'p>(
        self,
        store: &SchemaStore,
        args: &InputArgs,
        paths: impl Iterator<Item = &'p PathBuf>,
    ) -> Outcome {
        let Selection { providers: selected, events: names, conditions } = self;
        if selected.is_empty() && names.is_empty() && conditions.is_empty() {
            return Outcome::Success;
        }
        let (mut providers, mut events, mut fields) =
            (Providers::default(), BTreeSet::new(), Fields::default());
        for path in paths.filter(|path| !input::is_stdin(path)) {
            let Ok(mut input) = Input::open(path, args) else { continue };
            let Ok((mut trace, _)) = input.trace(&Options::salvage()) else { continue };
            if !conditions.is_empty() {
                fields.add(&mut trace, store.clone());
            }
            let Ok(survey) = Survey::of(&mut trace, store.clone(), |_| {}) else { continue };
            providers.add(&survey);
            events.extend(survey.events.into_iter().map(|event| event.event));
        }
        if providers.is_empty() {
            return Outcome::Success;
        }
        let mut outcome = providers.report_missing(selected);
        let mut missing = |what: &str, name: &str, nearest: String| {
            stderr_line!("error: no event has the {what} {name}{nearest}");
            outcome = Outcome::Findings;
        };
        for name in names {
            let is_seen = |event: &String| {
                Conditions::new(&[name], &[], &[]).is_ok_and(|wanted| wanted.admit_name(event))
            };
            if !events.iter().any(is_seen) {
                missing("name", name, nearest_in(name, &events));
            }
        }
        let conditions = Conditions::new(&[], conditions, &[]).unwrap_or_default();
        for name in conditions.fields() {
            if !fields.has(name) {
                missing("field", name, fields.nearest(name));
            }
        }
        outcome
    }
}

/// The providers that have events.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    names: BTreeSet<String>,
    guids: BTreeSet<String>,
}

impl Providers {
    /// Adds those of a trace.
    pub fn add(&mut self, survey: &Survey) {
        for provider in &survey.providers {
            self.names.extend(provider.provider.clone());
            self.guids.insert(provider.provider_guid.clone());
        }
    }

    /// Whether no event has any.
    pub fn is_empty(&self) -> bool {
        self.guids.is_empty()
    }

    /// Says on standard error which of these names and GUIDs no event has.
    pub fn report_missing(&self, selected: &[String]) -> Outcome {
        let mut outcome = Outcome::Success;
        for name in selected {
            let filter = Filter::of_providers([name]);
            let known = filter.providers.iter().any(|guid| self.guids.contains(&guid.to_string()));
            if !known && !self.names.iter().any(|other| other.eq_ignore_ascii_case(name)) {
                let nearest = nearest_in(name, &self.names);
                stderr_line!("error: no event has the provider {name}{nearest}");
                outcome = Outcome::Findings;
            }
        }
        outcome
    }
}

/// The names of fields that events have.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    names: BTreeSet<String>,
    /// Names without those of the structures that they are members of.
    members: BTreeSet<String>,
}

impl Fields {
    /// Adds those of a trace; `store` knows further schemas.
    pub fn add<S: Source>(&mut self, trace: &mut Trace<S>, store: SchemaStore) {
        let Ok(mut records) = trace.records(Order::File) else { return };
        let Ok(mut store) = schemas::read(&mut records, store) else { return };
        drop(records);
        let Ok(mut records) = trace.records(Order::File) else { return };
        let mut known = HashSet::new();
        while let Ok(Some(record)) = records.next_record() {
            store.learn(&record);
            let Some(decoder) = store.decoder(&record) else { continue };
            let schema = decoder.schema();
            // Many events have the same schema.
            if known.insert((schema.provider, schema.identity, schema.name.clone())) {
                self.add_all(&schema.fields, "");
            }
        }
    }

    /// Adds the names of fields, and of the members of structures with the names of these before.
    fn add_all(&mut self, fields: &[Field], before: &str) {
        for field in fields {
            let name = format!("{before}{}", field.name);
            if let FieldKind::Struct(members) = &field.kind {
                self.add_all(members, &format!("{name}."));
            }
            self.names.insert(name);
            self.members.insert(field.name.to_string());
        }
    }

    /// Whether an event has a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|field| field.eq_ignore_ascii_case(name))
    }

    /// The names nearest to one that no field has.
    pub fn nearest(&self, name: &str) -> String {
        nearest_in(name, &self.names)
    }

    /// Notes on standard error which of these names no field has, in a structure or not.
    pub fn note_missing<'n>(&self, option: &str, names: impl IntoIterator<Item = &'n str>) {
        for name in names {
            if !self.members.iter().any(|field| field.to_lowercase() == name.to_lowercase()) {
                let nearest = nearest_in(name, &self.members);
                stderr_line!("note: {option}: no event has the field {name}{nearest}");
            }
        }
    }
}

/// The nearest names, as the end of a message; nothing if there are none.
pub(crate) fn nearest(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("; the nearest name: {one}"),
        several => format!("; the nearest names: {}", several.join(", ")),
    }
}

/// The nearest of these names, as the end of a message.
fn nearest_in(name: &str, names: &BTreeSet<String>) -> String {
    nearest(&nearest_names(name, names.iter().map(String::as_str)))
}
