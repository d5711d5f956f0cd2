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
    /// Rules, or families of rules, whose findings are errors. [`Policy::WARNINGS`] makes every
    /// warning an error that is left after all other settings.
    pub deny: Vec<String>,
    /// Rules, or families of rules, whose findings are left out. What is denied as well is an
    /// error, except a rule that is named here and denied by its family alone.
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
    /// The word in [`Policy::deny`] that means all warnings.
    pub const WARNINGS: &'static str = "warnings";

    /// The first name of the policy that is neither a rule nor a family of rules.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        let known = |name: &str| RULES.iter().any(|r| r.id == name || r.family() == name);
        let deny = self.deny.iter().filter(|name| *name != Self::WARNINGS);
        let names = deny.chain(&self.allow).chain(self.severities.keys());
        names.map(String::as_str).find(|name| !known(name))
    }

    /// Adds rules, or families of rules, to [`Policy::allow`], and takes their rules out of what is
    /// denied so far: of a family that is denied, the others stay.
    pub fn overrule(&mut self, allow: &[String]) {
        let denied = std::mem::take(&mut self.deny);
        for name in denied {
            if !RULES
                .iter()
                .any(|r| Self::names(std::slice::from_ref(&name), r.id) && Self::names(allow, r.id))
            {
                self.deny.push(name);
                continue;
            }
            let left = RULES.iter().filter(|r| r.family() == name && !Self::names(allow, r.id));
            self.deny.extend(left.map(|r| r.id.to_owned()));
        }
        self.allow.extend(allow.iter().cloned());
    }

    /// Whether a list names a rule or its family.
    fn names(list: &[String], id: &str) -> bool {
        let family = Rule::find(id).map_or("", Rule::family);
        list.iter().any(|name| name == id || name == family)
    }

    fn denies(&self, id: &str) -> bool {
        let has = |list: &[String], name: &str| list.iter().any(|known| known == name);
        Self::names(&self.deny, id) && (has(&self.deny, id) || !has(&self.allow, id))
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
            if self.denies(finding.rule) {
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
        if self.deny.iter().any(|name| name == Self::WARNINGS) {
            let warnings = findings.iter_mut().filter(|f| f.severity == Severity::Warning);
            warnings.for_each(|finding| finding.severity = Severity::Error);
        }
        (before - findings.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrule_takes_rules_out_of_what_is_denied() {
        let left = |denied: &str, allowed: &str| {
            let mut policy = Policy { deny: vec![denied.to_owned()], ..Policy::default() };
            policy.overrule(&[allowed.to_owned()]);
            let finding = |rule| Finding::new(rule, Severity::Warning, String::new());
            let mut found = vec![finding("rundown.process-exited"), finding("rundown.endless")];
            policy.apply(&mut found);
            found.iter().map(|f| (f.rule, f.severity)).collect::<Vec<_>>()
        };
        let endless = |severity| vec![("rundown.endless", severity)];
        let exited = "rundown.process-exited";
        assert_eq!(left("rundown", exited), endless(Severity::Error));
        assert_eq!(left(exited, exited), endless(Severity::Warning));
        assert_eq!(left(exited, "rundown"), []);
        assert_eq!(left("rundown", "rundown"), []);
        assert_eq!(left(Policy::WARNINGS, exited), endless(Severity::Error));
        let both = vec![(exited, Severity::Error), ("rundown.endless", Severity::Error)];
        assert_eq!(left("rundown", "stacks"), both);
    }

    #[test]
    fn apply_prefers_a_rule_to_its_family() {
        let (exited, endless) = ("rundown.process-exited", "rundown.endless");
        let found = |deny: &[&str], allow: &[&str]| {
            let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
            let policy = Policy { deny: names(deny), allow: names(allow), ..Policy::default() };
            let finding = |rule| Finding::new(rule, Severity::Warning, String::new());
            let mut found = vec![finding(exited), finding(endless)];
            policy.apply(&mut found);
            found.iter().map(|f| (f.rule, f.severity)).collect::<Vec<_>>()
        };
        let error = |rule| (rule, Severity::Error);
        assert_eq!(found(&["rundown"], &[exited]), [error(endless)]);
        assert_eq!(found(&[exited], &["rundown"]), [error(exited)]);
        assert_eq!(found(&["rundown"], &["rundown"]), [error(exited), error(endless)]);
        assert_eq!(found(&[exited], &[exited]), [error(exited), (endless, Severity::Warning)]);
    }

    #[test]
    fn apply_denies_the_warnings_that_are_left() {
        let finding = |rule, severity| Finding::new(rule, severity, String::new());
        let findings = || {
            vec![
                finding("file.clock", Severity::Warning),
                finding("file.events-lost", Severity::Warning),
                finding("rundown.endless", Severity::Warning),
                finding("activity.no-stop", Severity::Note),
            ]
        };
        let mut policy = Policy::default();
        policy.deny.push(Policy::WARNINGS.to_owned());
        policy.allow.push("file.events-lost".to_owned());
        policy.severities.insert("rundown".to_owned(), SeverityOverride::Note);
        assert_eq!(policy.unknown(), None);
        let mut found = findings();
        assert_eq!(policy.apply(&mut found), 1);
        let left: Vec<_> = found.iter().map(|f| (f.rule, f.severity)).collect();
        assert_eq!(
            left,
            [
                ("file.clock", Severity::Error),
                ("rundown.endless", Severity::Note),
                ("activity.no-stop", Severity::Note),
            ]
        );
        policy.allow.push(Policy::WARNINGS.to_owned());
        assert_eq!(policy.unknown(), Some(Policy::WARNINGS), "only --deny takes it");
    }
}
