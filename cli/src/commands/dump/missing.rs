//! Reports providers, events and fields that were selected and that no trace has.

use std::collections::BTreeSet;
use std::path::PathBuf;

use etl_format::read::{Mode, Options};
use etl_tools::rows::Conditions;
use etl_tools::survey::Survey;

use super::printer::Session;
use crate::Outcome;
use crate::input::{self, Input};
use crate::missing::{Fields, Providers, nearest};

/// Says on standard error which of the selected providers, events and fields no trace has, with the
/// nearest names that the traces have. A trace from a pipe cannot be read again.
pub(super) fn report(session: &Session<'_>, paths: &mut dyn Iterator<Item = &PathBuf>) -> Outcome {
    let args = session.args;
    let selected = args.filter.providers();
    if selected.is_empty() && args.event.is_empty() && args.conditions.is_empty() {
        return Outcome::Success;
    }
    let (mut providers, mut events, mut fields) =
        (Providers::default(), BTreeSet::new(), Fields::default());
    for path in paths.filter(|path| !input::is_stdin(path)) {
        let options = Options { mode: Mode::Salvage, ..Options::default() };
        let store = session.frame.borrow().store().clone();
        let Ok(mut input) = Input::open(path, &args.input) else { continue };
        let Ok((mut trace, _)) = input.trace(&options) else { continue };
        if !args.conditions.is_empty() {
            fields.add(&mut trace, store.clone());
        }
        let Ok(survey) = Survey::of(&mut trace, store, |_| {}) else { continue };
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
    for name in &args.event {
        let is_seen = |event: &String| {
            Conditions::new(&[name], &[], None).is_ok_and(|wanted| wanted.admit_name(event))
        };
        if !events.iter().any(is_seen) {
            missing("name", name, nearest(name, &events));
        }
    }
    let conditions = Conditions::new(&[], &args.conditions, None).unwrap_or_default();
    for name in conditions.fields() {
        if !fields.has(name) {
            missing("field", name, fields.nearest(name));
        }
    }
    outcome
}
