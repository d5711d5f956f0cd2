//! What a user makes of the rules: which to be strict about, which to leave out, what share of
//! addresses has to resolve.

use serde::Deserialize;

use crate::facts::{Facts, Origin, Tallies, Tally};
use crate::report::{Finding, Severity};
use crate::rules::catalogue::{Rule, SYMBOLS_COVERAGE};

/// How findings are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Rules, or families of rules, whose findings are errors.
    pub deny: Vec<String>,
    /// Rules, or families of rules, whose findings are left out.
    pub allow: Vec<String>,
    /// Least shares of addresses.
    pub gates: Gates,
    /// Other weights of rules, or families of rules. A rule's goes before its family's, what is denied
    /// or allowed before both.
    pub weights: Vec<(String, Weight)>,
}

/// Least shares in percent; what is not given is not asked for. Of no addresses at all any share is met.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gates {
    /// Of all addresses those that resolve.
    pub coverage: Option<f64>,
    /// The same in each process.
    pub process_coverage: Option<f64>,
    /// Of the sampled addresses those that resolve: what counts is where time was spent.
    pub sample_coverage: Option<f64>,
    /// Of the addresses in managed code those whose method an event names.
    pub named: Option<f64>,
    /// Of the addresses in images those whose image the trace gives the PDB identity of.
    pub identified: Option<f64>,
}

impl Gates {
    /// The gates by name, as the command line and the configuration file call them.
    #[must_use]
    pub fn named_ones(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("min-coverage", self.coverage),
            ("min-process-coverage", self.process_coverage),
            ("min-sample-coverage", self.sample_coverage),
            ("min-named", self.named),
            ("min-identified", self.identified),
        ]
    }

    /// These gates, and those of others where nothing is asked for here.
    #[must_use]
    pub fn or(self, other: Gates) -> Gates {
        Gates {
            coverage: self.coverage.or(other.coverage),
            process_coverage: self.process_coverage.or(other.process_coverage),
            sample_coverage: self.sample_coverage.or(other.sample_coverage),
            named: self.named.or(other.named),
            identified: self.identified.or(other.identified),
        }
    }

    /// What does not pass.
    fn judge(&self, facts: &Facts) -> Vec<Finding> {
        let sum = |tallies: Tallies| {
            let mut sum = Tally::default();
            tallies.into_iter().for_each(|tally| sum += tally);
            sum
        };
        let tallies = facts.tallies();
        let all = sum(tallies);
        let sampled = tallies.get(Origin::Sample as usize).copied().unwrap_or_default();
        let resolved = |t: Tally| (t.frames.saturating_sub(t.unresolved), t.frames);
        let mut findings = Vec::new();
        let ask = |least: Option<f64>, (part, whole): (u64, u64), what: &str| {
            let least = least?;
            let share = if whole == 0 { 100.0 } else { part as f64 / whole as f64 * 100.0 };
            (share < least).then(|| {
                // Rounded down: what falls short must not look as if it did not.
                let shown = (share * 1000.0).floor() / 1000.0;
                let message =
                    format!("{part} of {whole} {what} ({shown:.3} %), {least} % were asked for");
                Finding::new(&SYMBOLS_COVERAGE, message)
            })
        };
        findings.extend(ask(self.coverage, resolved(all), "addresses resolve"));
        findings.extend(ask(self.sample_coverage, resolved(sampled), "samples resolve"));
        let named = (all.named, all.managed);
        findings.extend(ask(self.named, named, "addresses in managed code have a method's name"));
        let identified = (all.identified, all.image);
        let what = "addresses in images have the identity of a PDB";
        findings.extend(ask(self.identified, identified, what));
        for process in &facts.processes {
            let own = resolved(sum(process.tallies));
            let finding = ask(self.process_coverage, own, "addresses of the process resolve");
            findings.extend(finding.map(|f| f.of(facts, process, None)));
        }
        findings
    }
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
        findings.extend(self.gates.judge(facts));
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
}
