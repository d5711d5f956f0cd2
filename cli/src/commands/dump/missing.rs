//! Reports providers and events that were selected and that no trace has.

use std::collections::BTreeSet;
use std::path::PathBuf;

use etl_format::read::{Mode, Options};
use etl_tools::filter::Filter;
use etl_tools::rows::Conditions;
use etl_tools::survey::Survey;

use super::printer::Session;
use crate::Outcome;
use crate::input::{self, Input};

/// Names that are listed as the nearest.
const NEAREST: usize = 3;

/// Says on standard error which of the selected providers and events no trace has, with the nearest
/// names that the traces have. A trace from a pipe cannot be read again.
pub(super) fn report<'p>(
    session: &Session<'_>,
    paths: impl Iterator<Item = &'p PathBuf>,
) -> Outcome {
    let args = session.args;
    let selected = args.filter.providers();
    if selected.is_empty() && args.event.is_empty() {
        return Outcome::Success;
    }
    let (mut providers, mut guids, mut events) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for path in paths.filter(|path| !input::is_stdin(path)) {
        let options = Options { mode: Mode::Salvage, ..Options::default() };
        let store = session.frame.borrow().store().clone();
        let Ok(mut input) = Input::open(path, &args.input) else { continue };
        let Ok((mut trace, _)) = input.trace(&options) else { continue };
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
    outcome
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
