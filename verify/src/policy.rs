//! What a user makes of the rules: which to be strict about, which to leave out, what share of
//! addresses has to resolve.

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
        self.deny.iter().chain(&self.allow).find(|name| !known(name)).map(String::as_str)
    }

    fn names(list: &[String], id: &str) -> bool {
        let family = Rule::find(id).map_or("", Rule::family);
        list.iter().any(|name| name == id || name == family)
    }

    /// Weighs the findings, and counts those that are left out. A rule that is both denied and allowed is denied.
    pub(crate) fn weigh(&self, facts: &Facts, mut findings: Vec<Finding>) -> (Vec<Finding>, u64) {
        findings.extend(self.coverage(facts));
        let before = findings.len();
        findings.retain(|f| Self::names(&self.deny, f.rule) || !Self::names(&self.allow, f.rule));
        let left_out = (before - findings.len()) as u64;
        for finding in &mut findings {
            if Self::names(&self.deny, finding.rule) {
                finding.severity = Severity::Error;
            }
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
