//! Reports selected names that no trace has, with the nearest names that the traces have.

use std::path::PathBuf;

use etl_events::conditions::Conditions;
use etl_events::missing::{MissingName, NameKind, TraceNames};
use etl_events::survey::Survey;
use etl_format::read::Options;
use etl_schema::store::SchemaStore;

use crate::Outcome;
use crate::input::{self, Input, InputArgs};

/// The names in a selection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    pub providers: &'a [String],
    pub events: &'a [String],
    pub conditions: &'a [String],
}

impl Selection<'_> {
    /// Says on standard error which of the providers, events and fields no trace has, with the
    /// nearest names that the traces have. A trace from a pipe cannot be read again.
    pub fn report_missing(
        self,
        store: &SchemaStore,
        args: &InputArgs,
        paths: &[PathBuf],
    ) -> Outcome {
        if self.providers.is_empty() && self.events.is_empty() && self.conditions.is_empty() {
            return Outcome::Success;
        }
        let mut names = TraceNames::default();
        for path in paths.iter().filter(|path| !input::is_stdin(path)) {
            let Ok(mut input) = Input::open(path, args) else {
                continue;
            };
            let Ok((mut trace, _)) = input.trace(&Options::salvage()) else {
                continue;
            };
            if !self.conditions.is_empty() {
                // The fields before an error are better than none.
                let _ = names.add_fields(&mut trace, store.clone());
            }
            if let Ok(survey) = Survey::of(&mut trace, store.clone(), |_| {}) {
                names.add_survey(&survey);
            }
        }
        if names.is_empty() {
            return Outcome::Success;
        }
        let conditions = Conditions::new(&[], self.conditions, &[]).unwrap_or_default();
        let mut missing = names.missing_providers(self.providers.iter().map(String::as_str));
        missing.extend(names.missing_events(self.events.iter().map(String::as_str)));
        missing.extend(names.missing_fields(conditions.fields()));
        report(&missing)
    }
}

/// Reports names on standard error.
pub(crate) fn report(missing: &[MissingName]) -> Outcome {
    for name in missing {
        stderr_line!("error: {}", message(name));
    }
    if missing.is_empty() {
        Outcome::Success
    } else {
        Outcome::Findings
    }
}

/// Notes on standard error the fields that an option names and no event has.
pub(crate) fn note_fields(option: &str, missing: &[MissingName]) {
    for name in missing {
        stderr_line!("note: {option}: {}", message(name));
    }
}

fn message(missing: &MissingName) -> String {
    let kind = match missing.kind {
        NameKind::Provider => "provider",
        NameKind::Event => "name",
        _ => "field",
    };
    let names: Vec<&str> = missing.nearest.iter().map(String::as_str).collect();
    format!(
        "no event has the {kind} {}{}",
        missing.name,
        nearest(&names)
    )
}

/// The nearest names, as the end of a message; nothing if there are none.
pub(crate) fn nearest(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("; the nearest name: {one}"),
        several => format!("; the nearest names: {}", several.join(", ")),
    }
}
