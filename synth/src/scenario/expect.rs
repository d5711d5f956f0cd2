//! `expect FILE... verdict= rules=`: what a verifier has to find in the traces.

use super::args::Args;
use crate::model::{Expectation, ExpectedVerdict, Scenario};

/// `expect "clr1.etl" verdict="incomplete" rules="rundown.none symbols.module-unknown"`
pub(super) fn expect(mut args: Args<'_, '_>, scenario: &mut Scenario) {
    let verdicts = ExpectedVerdict::ALL.map(|verdict| (verdict.name(), verdict));
    let verdict = args.choice("verdict", &verdicts);
    let rules: String = args.get("rules").unwrap_or_default();
    let mut files = Vec::new();
    while let Some(file) = args.maybe::<String>("a file") {
        files.push(file);
    }
    let Some(verdict) = verdict else {
        args.error("expect needs a verdict", "verdict=\"complete\"", None);
        return args.finish();
    };
    if files.is_empty() && scenario.expectations.iter().any(|e| e.files.is_empty()) {
        args.error("two expect are for all other files", "the second", None);
    } else if let Some(file) = files
        .iter()
        .find(|file| scenario.expectations.iter().any(|e| e.files.contains(file)))
    {
        args.error(format!("two expect are for \"{file}\""), "the second", None);
    }
    let rules = rules
        .split([' ', ','])
        .filter(|rule| !rule.is_empty())
        .map(str::to_owned);
    let rules = rules.collect();
    let location = Some(args.location());
    scenario.expectations.push(Expectation {
        files,
        verdict,
        rules,
        location,
    });
    args.finish();
}
