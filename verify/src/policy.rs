//! The user's settings for the rules: severities, rules to ignore, and minimum shares of addresses.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::finding::{Finding, Severity};
use crate::gates::Gates;
use crate::rules::{RULES, Rule};
use crate::{Error, Result};

/// How severe findings are, and which are left out.
///
/// A name is the id of a rule or the name of a family of rules. A name that is neither is rejected:
///
/// ```
/// use etl_verify::{Policy, SeverityOverride};
///
/// let policy = Policy::new()
///     .deny("rundown")?
///     .allow("file.sequence-gap")?
///     .severity("activity", SeverityOverride::Off)?;
/// assert_eq!(policy.denied(), ["rundown"]);
///
/// let error = Policy::new().deny("rundwon").unwrap_err();
/// assert_eq!(error.to_string(), "\"rundwon\" is neither a rule nor a family of rules");
/// # Ok::<(), etl_verify::Error>(())
/// ```
///
/// In a test of your own, warnings can be errors:
///
/// ```no_run
/// use etl_format::read::FileSource;
/// use etl_verify::{Policy, Verifier};
///
/// let policy = Policy::new().deny(Policy::WARNINGS)?;
/// let trace = FileSource::new(std::fs::File::open("app.etl")?)?;
/// let report = Verifier::new().policy(policy).verify(trace, "app.etl")?;
/// assert!(report.verdict.passes(), "{}", report.text());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    deny: Vec<String>,
    allow: Vec<String>,
    gates: Gates,
    severities: BTreeMap<String, SeverityOverride>,
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
    /// The name of all warnings, for [`Policy::deny`].
    pub const WARNINGS: &'static str = "warnings";

    /// A policy with the severities of the rules, which leaves nothing out.
    #[must_use]
    pub fn new() -> Self {
        Policy::default()
    }

    /// Makes the findings of a rule or of a family errors. [`Policy::WARNINGS`] makes every finding
    /// an error that is still a warning after all other settings.
    ///
    /// # Errors
    /// [`Error::UnknownRule`] if there is no such rule and no such family.
    pub fn deny(mut self, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if name != Self::WARNINGS {
            check_name(&name)?;
        }
        self.deny.push(name);
        Ok(self)
    }

    /// Leaves out the findings of a rule or of a family. A rule that is also denied stays an error,
    /// unless it is allowed by its id and denied by its family.
    ///
    /// ```
    /// use etl_verify::Policy;
    ///
    /// let policy = Policy::new().allow("activity")?;
    /// assert_eq!(policy.allowed(), ["activity"]);
    /// assert!(Policy::new().allow(Policy::WARNINGS).is_err(), "only `deny` accepts it");
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownRule`] if there is no such rule and no such family.
    pub fn allow(mut self, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        check_name(&name)?;
        self.allow.push(name);
        Ok(self)
    }

    /// Allows a rule or a family, and no longer denies its rules: for an option that overrides a
    /// configuration file. If the family of a rule is denied, its other rules stay denied.
    ///
    /// ```
    /// use etl_verify::Policy;
    ///
    /// let file = Policy::new().deny("rundown")?;
    /// let policy = file.overrule("rundown.endless")?;
    /// assert!(!policy.denied().iter().any(|name| name == "rundown.endless"));
    /// assert!(policy.denied().iter().any(|name| name == "rundown.process-exited"));
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownRule`] if there is no such rule and no such family.
    pub fn overrule(mut self, name: impl Into<String>) -> Result<Self> {
        let allowed = name.into();
        let denied = std::mem::take(&mut self.deny);
        for name in denied {
            let is_overruled = RULES
                .iter()
                .any(|rule| is_named(rule, &name) && is_named(rule, &allowed));
            if !is_overruled {
                self.deny.push(name);
                continue;
            }
            let others = RULES
                .iter()
                .filter(|rule| rule.family() == name && !is_named(rule, &allowed));
            self.deny.extend(others.map(|rule| rule.id.to_owned()));
        }
        self.allow(allowed)
    }

    /// Sets the severity of a rule or of a family. The severity of a rule precedes the severity of
    /// its family; [`Policy::deny`] and [`Policy::allow`] precede both.
    ///
    /// ```
    /// use etl_verify::{Policy, SeverityOverride};
    ///
    /// let policy = Policy::new()
    ///     .severity("file", SeverityOverride::Note)?
    ///     .severity("file.events-lost", SeverityOverride::Error)?;
    /// assert_eq!(policy.severities()["file.events-lost"], SeverityOverride::Error);
    /// # Ok::<(), etl_verify::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownRule`] if there is no such rule and no such family.
    pub fn severity(mut self, name: impl Into<String>, severity: SeverityOverride) -> Result<Self> {
        let name = name.into();
        check_name(&name)?;
        self.severities.insert(name, severity);
        Ok(self)
    }

    /// Requires these shares of addresses to resolve. A share that is set replaces an earlier one.
    ///
    /// ```
    /// use etl_verify::{Gates, Policy};
    ///
    /// let mut gates = Gates::default();
    /// gates.coverage = Some(99.5);
    /// let policy = Policy::new().require(gates);
    /// assert_eq!(policy.gates().coverage, Some(99.5));
    /// ```
    #[must_use]
    pub fn require(self, gates: Gates) -> Self {
        Policy {
            gates: gates.or(self.gates),
            ..self
        }
    }

    /// The rules and families whose findings are errors, and [`Policy::WARNINGS`].
    #[must_use]
    pub fn denied(&self) -> &[String] {
        &self.deny
    }

    /// The rules and families whose findings are left out.
    #[must_use]
    pub fn allowed(&self) -> &[String] {
        &self.allow
    }

    /// The shares of addresses that have to resolve.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// The severities of rules and families.
    #[must_use]
    pub fn severities(&self) -> &BTreeMap<String, SeverityOverride> {
        &self.severities
    }

    /// Whether a list names a rule or its family.
    fn names(list: &[String], id: &str) -> bool {
        let family = Rule::find(id).map_or("", Rule::family);
        list.iter().any(|name| name == id || name == family)
    }

    fn denies(&self, id: &str) -> bool {
        let is_denied_by_id = self.deny.iter().any(|name| name == id);
        let is_allowed_by_id = self.allow.iter().any(|name| name == id);
        Self::names(&self.deny, id) && (is_denied_by_id || !is_allowed_by_id)
    }

    /// The severity that is set for a rule or else for its family.
    fn severity_of(&self, id: &str) -> Option<SeverityOverride> {
        if let Some(&severity) = self.severities.get(id) {
            return Some(severity);
        }
        let family = Rule::find(id)?.family();
        self.severities.get(family).copied()
    }

    /// Sets the severities of findings, removes the ones that are left out, and returns their
    /// number.
    pub(crate) fn apply(&self, findings: &mut Vec<Finding>) -> u64 {
        let before = findings.len();
        findings.retain_mut(|finding| {
            let severity = self.severity_of(finding.rule);
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
            let warnings = findings
                .iter_mut()
                .filter(|f| f.severity == Severity::Warning);
            warnings.for_each(|finding| finding.severity = Severity::Error);
        }
        (before - findings.len()) as u64
    }
}

/// Whether a name is the id of a rule or its family.
fn is_named(rule: &Rule, name: &str) -> bool {
    rule.id == name || rule.family() == name
}

/// Rejects a name that is neither the id of a rule nor a family.
fn check_name(name: &str) -> Result<()> {
    if RULES.iter().any(|rule| is_named(rule, name)) {
        return Ok(());
    }
    Err(Error::UnknownRule(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrule_takes_rules_out_of_what_is_denied() {
        let left = |denied: &str, allowed: &str| {
            let policy = Policy::new()
                .deny(denied)
                .unwrap()
                .overrule(allowed)
                .unwrap();
            let finding = |rule| Finding::new(rule, Severity::Warning, String::new());
            let mut found = vec![
                finding("rundown.process-exited"),
                finding("rundown.endless"),
            ];
            policy.apply(&mut found);
            found
                .iter()
                .map(|f| (f.rule, f.severity))
                .collect::<Vec<_>>()
        };
        let endless = |severity| vec![("rundown.endless", severity)];
        let exited = "rundown.process-exited";
        assert_eq!(left("rundown", exited), endless(Severity::Error));
        assert_eq!(left(exited, exited), endless(Severity::Warning));
        assert_eq!(left(exited, "rundown"), []);
        assert_eq!(left("rundown", "rundown"), []);
        assert_eq!(left(Policy::WARNINGS, exited), endless(Severity::Error));
        let both = vec![
            (exited, Severity::Error),
            ("rundown.endless", Severity::Error),
        ];
        assert_eq!(left("rundown", "stacks"), both);
    }

    #[test]
    fn apply_prefers_a_rule_to_its_family() {
        let (exited, endless) = ("rundown.process-exited", "rundown.endless");
        let found = |deny: &[&str], allow: &[&str]| {
            let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
            let policy = Policy {
                deny: names(deny),
                allow: names(allow),
                ..Policy::default()
            };
            let finding = |rule| Finding::new(rule, Severity::Warning, String::new());
            let mut found = vec![finding(exited), finding(endless)];
            policy.apply(&mut found);
            found
                .iter()
                .map(|f| (f.rule, f.severity))
                .collect::<Vec<_>>()
        };
        let error = |rule| (rule, Severity::Error);
        assert_eq!(found(&["rundown"], &[exited]), [error(endless)]);
        assert_eq!(found(&[exited], &["rundown"]), [error(exited)]);
        assert_eq!(
            found(&["rundown"], &["rundown"]),
            [error(exited), error(endless)]
        );
        assert_eq!(
            found(&[exited], &[exited]),
            [error(exited), (endless, Severity::Warning)]
        );
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
        let policy = Policy::new().deny(Policy::WARNINGS).unwrap();
        let policy = policy.allow("file.events-lost").unwrap();
        let policy = policy.severity("rundown", SeverityOverride::Note).unwrap();
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
    }
}
