//! What a user makes of the rules: which to be strict about, which to leave out, what share of
//! addresses has to resolve.

use serde::Deserialize;

use crate::facts::{Facts, Tally};
use crate::report::{Finding, Severity};
use crate::rules::catalogue::{Rule, SYMBOLS_COVERAGE};

/// How findings are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Rules, or families of rules, whose findings are errors.
    pub deny: Vec<String>,
    /// Rules, or families of rules, whose findings are left out.
    pub allow: Vec<String>,
    /// Least share of addresses that resolve, in percent.
    pub min_coverage: Option<f64>,
    /// Other weights of rules, or families of rules. A rule's goes before its family's, what is denied
    /// or allowed before both.
    pub weights: Vec<(String, Weight)>,
}

/// A weight that a user gives to findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// They are errors.
    Error,
    /// They are warnings.
    Warning,
    /// They are notes.
    Note,
    /// They are left out.
    Off,
}

impl Policy {
    /// The first name of the policy that is neither a rule's nor a family's.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        let known = |name: &&String| {
            crate::RULES
                .iter()
                .any(|rule| rule.id == name.as_str() || rule.family() == name.as_str())
        };
        let weighed = self.weights.iter().map(|(name, _)| name);
        self.deny
            .iter()
            .chain(&self.allow)
            .chain(weighed)
            .find(|name| !known(name))
            .map(String::as_str)
    }

    fn names(list: &[String], id: &str) -> bool {
        let family = Rule::find(id).map_or("", Rule::family);
        list.iter().any(|name| name == id || name == family)
    }

    /// The weight of a rule: its own, or its family's.
    fn weight(&self, id: &str) -> Option<Weight> {
        let of = |wanted: &str| {
            self.weights.iter().find(|(name, _)| name == wanted).map(|(_, weight)| *weight)
        };
        of(id).or_else(|| of(Rule::find(id)?.family()))
    }

    /// Weighs the findings, and counts those that are left out. A rule that is both denied and allowed is denied.
    pub(crate) fn weigh(&self, facts: &Facts, mut findings: Vec<Finding>) -> (Vec<Finding>, u64) {
        findings.extend(self.coverage(facts));
        let before = findings.len();
        let off = |f: &Finding| {
            Self::names(&self.allow, f.rule) || self.weight(f.rule) == Some(Weight::Off)
        };
        findings.retain(|f| Self::names(&self.deny, f.rule) || !off(f));
        let left_out = (before - findings.len()) as u64;
        for finding in &mut findings {
            if Self::names(&self.deny, finding.rule) {
                finding.severity = Severity::Error;
                continue;
            }
            finding.severity = match self.weight(finding.rule) {
                Some(Weight::Error) => Severity::Error,
                Some(Weight::Warning) => Severity::Warning,
                Some(Weight::Note) => Severity::Note,
                Some(Weight::Off) | None => finding.severity,
            };
        }
        (findings, left_out)
    }

    fn coverage(&self, facts: &Facts) -> Option<Finding> {
        let least = self.min_coverage?;
        let mut sum = Tally::default();
        facts.tallies().into_iter().for_each(|tally| sum += tally);
        // Of no addresses at all, all resolve.
        let share = if sum.frames == 0 {
            100.0
        } else {
            (sum.frames - sum.unresolved) as f64 / sum.frames as f64 * 100.0
        };
        (share < least).then(|| {
            let (resolved, frames) = (sum.frames - sum.unresolved, sum.frames);
            let message = format!(
                "{resolved} of {frames} addresses resolve ({share:.3} %), {least} % were asked for"
            );
            Finding::new(&SYMBOLS_COVERAGE, message)
        })
    }
}
