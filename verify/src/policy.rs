//! What a user makes of the rules: severities, rules to ignore, shares of addresses that must
//! resolve.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::finding::{Finding, Severity};
use crate::gates::Gates;
use crate::rules::{RULES, Rule};

/// How severe findings are, and which are left out.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Rules, or families of rules, whose findings are errors.
    pub deny: Vec<String>,
    /// Rules, or families of rules, whose findings are left out. What is denied as well is an
    /// error.
    pub allow: Vec<String>,
    /// Shares of addresses that must be reached.
    pub gates: Gates,
    /// Severities of rules, or of families of rules. A rule's precedes its family's; `deny` and
    /// `allow` precede both.
    pub severities: BTreeMap<String, SeverityOverride>,
}

/// A severity that a user sets for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeverityOverride {
    /// Findings are errors.
    Error,
    /// Findings are warnings.
    Warning,
    /// Findings are notes.
    Note,
    /// Findings are left out.
    Off,
}

impl Policy {
    /// The first name of the policy that is neither a rule nor a family of rules.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        let known = |name: &str| RULES.iter().any(|r| r.id == name || r.family() == name);
        let names = self.deny.iter().chain(&self.allow).chain(self.severities.keys());
        names.map(String::as_str).find(|name| !known(name))
    }

    /// Whether a list names a rule or its family.
    fn names(list: &[String], id: &str) -> bool {
        let family = Rule::find(id).map_or("", Rule::family);
        list.iter().any(|name| name == id || name == family)
    }

    /// The severity that is set for a rule or else for its family.
    fn severity(&self, id: &str) -> Option<SeverityOverride> {
        let of = |name: &str| self.severities.get(name).copied();
        of(id).or_else(|| of(Rule::find(id)?.family()))
    }

    /// Sets the severities of findings; removes and counts those that are left out.
    pub(crate) fn apply(&self, findings: &mut Vec<Finding>) -> u64 {
        let before = findings.len();
        findings.retain_mut(|finding| {
            let severity = self.severity(finding.rule);
            if Self::names(&self.deny, finding.rule) {
                finding.severity = Severity::Error;
                return true;
            }
            match severity {
                Some(SeverityOverride::Error) => finding.severity = Severity::Error,
                Some(SeverityOverride::Warning) => finding.severity = Severity::Warning,
                Some(SeverityOverride::Note) => finding.severity = Severity::Note,
                Some(SeverityOverride::Off) => return false,
                None => {}
            }
            !Self::names(&self.allow, finding.rule)
        });
        (before - findings.len()) as u64
    }
}
