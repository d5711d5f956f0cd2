//! Selected names that no event has, with the nearest names of the traces.
//!
//! A filter that selects nothing is usually a misspelt name:
//!
//! ```
//! use etl_events::missing::TraceNames;
//! use etl_events::survey::Survey;
//! use etl_format::read::{Options, Trace};
//! use etl_schema::store::SchemaStore;
//!
//! # let bytes = etl_events::testing::trace();
//! let mut trace = Trace::open(bytes.as_slice(), &Options::salvage())?;
//! let store = SchemaStore::default();
//! let mut names = TraceNames::default();
//! names.add_survey(&Survey::of(&mut trace, store.clone(), |_| {})?);
//! names.add_fields(&mut trace, store)?;
//!
//! let missing = names.missing_providers(["Microsoft-Windows-DotNETRuntim"]);
//! assert_eq!(missing[0].nearest, ["Microsoft-Windows-DotNETRuntime"]);
//! assert!(names.missing_fields(["Count"]).is_empty());
//! # Ok::<(), etl_events::Error>(())
//! ```

use std::collections::{BTreeSet, HashSet};

use etl_control::nearest_names;
use etl_format::read::{Order, Source, Trace};
use etl_schema::store::SchemaStore;
use etl_schema::{Field, FieldKind};

use crate::conditions::Conditions;
use crate::filter::Filter;
use crate::schemas;
use crate::survey::Survey;

/// The names of providers, events and fields in one or several traces.
#[derive(Clone, Debug, Default)]
pub struct TraceNames {
    providers: BTreeSet<String>,
    provider_guids: BTreeSet<String>,
    events: BTreeSet<String>,
    /// Full names of fields: `Heaps.Size`.
    fields: BTreeSet<String>,
    /// Names of fields without the structures that they are members of: `Size`.
    members: BTreeSet<String>,
}

/// A selected name that no event has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingName {
    /// What has this name.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// The names of the traces that are most like it, the most similar first; at most three.
    pub nearest: Vec<String>,
}

/// What a name is a name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameKind {
    /// A provider.
    Provider,
    /// An event.
    Event,
    /// A field.
    Field,
}

impl MissingName {
    fn new(kind: NameKind, name: &str, names: &BTreeSet<String>) -> Self {
        let nearest = nearest_names(name, names.iter().map(String::as_str));
        let nearest = nearest.into_iter().map(str::to_owned).collect();
        MissingName {
            kind,
            name: name.to_owned(),
            nearest,
        }
    }
}

impl TraceNames {
    /// Adds the providers and events of a trace.
    pub fn add_survey(&mut self, survey: &Survey) {
        for provider in &survey.providers {
            self.providers.extend(provider.provider.clone());
            self.provider_guids.insert(provider.provider_guid.clone());
        }
        self.events
            .extend(survey.events.iter().map(|event| event.event.clone()));
    }

    /// Reads a trace and adds the fields of its events. `store` has the schemas that are known
    /// without the trace. The fields before an error are added.
    ///
    /// # Errors
    /// Errors of reading, with the options of the trace.
    pub fn add_fields<S: Source>(
        &mut self,
        trace: &mut Trace<S>,
        store: SchemaStore,
    ) -> etl_format::Result<()> {
        let mut records = trace.records(Order::File)?;
        let mut store = schemas::read(&mut records, store)?;
        drop(records);
        let mut records = trace.records(Order::File)?;
        // Many events have the same schema.
        let mut added = HashSet::new();
        while let Some(record) = records.next_record()? {
            store.learn(&record);
            let Some(decoder) = store.decoder(&record) else {
                continue;
            };
            let schema = decoder.schema();
            if added.insert((schema.provider, schema.identity, schema.name.clone())) {
                self.add_members(&schema.fields, "");
            }
        }
        Ok(())
    }

    /// Adds fields whose full names begin with `prefix`, and the members of structures.
    fn add_members(&mut self, fields: &[Field], prefix: &str) {
        for field in fields {
            let name = format!("{prefix}{}", field.name);
            if let FieldKind::Struct(members) = &field.kind {
                self.add_members(members, &format!("{name}."));
            }
            self.fields.insert(name);
            self.members.insert(field.name.to_string());
        }
    }

    /// Whether no event was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.provider_guids.is_empty()
    }

    /// The providers that have no event. `names` are names or GUIDs, as [`Filter::of_providers`]
    /// has them.
    #[must_use]
    pub fn missing_providers<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Vec<MissingName> {
        let missing = names.into_iter().filter(|name| !self.has_provider(name));
        missing
            .map(|name| MissingName::new(NameKind::Provider, name, &self.providers))
            .collect()
    }

    fn has_provider(&self, name: &str) -> bool {
        let filter = Filter::of_providers([name]);
        filter
            .providers
            .iter()
            .any(|guid| self.provider_guids.contains(&guid.to_string()))
            || has_name(&self.providers, name)
    }

    /// The names and patterns that no event matches, as [`Conditions::new`] has them.
    #[must_use]
    pub fn missing_events<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<MissingName> {
        let missing = names.into_iter().filter(|name| !self.has_event(name));
        missing
            .map(|name| MissingName::new(NameKind::Event, name, &self.events))
            .collect()
    }

    fn has_event(&self, name: &str) -> bool {
        match Conditions::new(&[name], &[], &[]) {
            Ok(condition) => self.events.iter().any(|event| condition.admit_name(event)),
            Err(_) => false,
        }
    }

    /// The full names that no field has.
    #[must_use]
    pub fn missing_fields<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<MissingName> {
        let missing = names
            .into_iter()
            .filter(|name| !has_name(&self.fields, name));
        missing
            .map(|name| MissingName::new(NameKind::Field, name, &self.fields))
            .collect()
    }

    /// The names that no field has, in a structure or not.
    #[must_use]
    pub fn missing_members<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Vec<MissingName> {
        let missing = names.into_iter().filter(|name| {
            let name = name.to_lowercase();
            !self
                .members
                .iter()
                .any(|field| field.to_lowercase() == name)
        });
        missing
            .map(|name| MissingName::new(NameKind::Field, name, &self.members))
            .collect()
    }
}

/// Whether a name is there, in any case of ASCII letters.
fn has_name(names: &BTreeSet<String>, name: &str) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}
