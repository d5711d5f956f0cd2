//! The subjects of rules, and whether a trace has them.

use etl_analysis::address::Origin;
use etl_analysis::loss::LossKind;
use etl_analysis::machine::Process;

use super::Rule;
use crate::checks::Facts;
use crate::checks::losses::EventOrigin;

/// The part of a trace that a rule checks. If a trace does not have it, the rule is not applicable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The files and their records.
    Files,
    /// Known enablements of providers.
    Enablements,
    /// Managed code.
    ManagedCode,
    /// Rundowns.
    Rundowns,
    /// Addresses of stacks and samples.
    Addresses,
    /// Several files or sessions as one recording.
    Parts,
    /// Stacks of the CLR.
    ClrStacks,
    /// Stacks of the kernel.
    KernelStacks,
    /// Events of the kernel.
    Kernel,
    /// Activities of events.
    Activities,
}

/// Subjects of rules, and of families of rules. The subject of a rule precedes the subject of its
/// family.
const SUBJECTS: &[(&str, Subject)] = &[
    ("file", Subject::Files),
    ("filter.not-enabled", Subject::Enablements),
    ("filter.silent-process", Subject::Enablements),
    ("filter", Subject::ManagedCode),
    ("rundown.none", Subject::ManagedCode),
    ("rundown.missing", Subject::ManagedCode),
    ("rundown.process-exited", Subject::ManagedCode),
    ("rundown", Subject::Rundowns),
    ("symbols.unresolved", Subject::Addresses),
    ("symbols.coverage", Subject::Addresses),
    ("symbols.no-image-pdb", Subject::Addresses),
    ("symbols.wrong-time", Subject::Addresses),
    ("symbols", Subject::ManagedCode),
    ("merge.no-image-ids", Subject::Addresses),
    ("merge", Subject::Parts),
    ("kernel", Subject::Kernel),
    ("stacks.undefined-key", Subject::KernelStacks),
    ("stacks.before-event", Subject::KernelStacks),
    ("stacks.unused-definition", Subject::KernelStacks),
    ("stacks.kernel-without-event", Subject::KernelStacks),
    ("stacks.kernel-missing", Subject::KernelStacks),
    ("stacks.missing", Subject::ManagedCode),
    ("stacks", Subject::ClrStacks),
    ("gc", Subject::ManagedCode),
    ("activity", Subject::Activities),
    ("payload", Subject::Files),
];

/// Rules whose findings are losses: the lost events might break other rules.
const LOSSES: &[&str] = &[
    "file.unclosed",
    "file.events-lost",
    "file.buffers-lost",
    "file.sequence-gap",
    "file.overwritten",
];

/// Whether the findings of a rule are losses.
pub(crate) fn reports_loss(rule: &str) -> bool {
    LOSSES.contains(&rule)
}

/// The kind of loss that the findings of a rule are about, if losses of this kind have times.
pub(crate) fn loss_of(rule: &str) -> Option<LossKind> {
    match rule {
        "file.damaged" => Some(LossKind::FileDamaged),
        "file.unclosed" => Some(LossKind::EndMissing),
        "file.events-lost" => Some(LossKind::EventsLost),
        "file.buffers-lost" => Some(LossKind::BuffersLost),
        "file.overwritten" => Some(LossKind::Overwritten),
        _ => None,
    }
}

impl Subject {
    /// The subject of the rule with this id.
    pub fn of(rule: &str) -> Subject {
        let family = Rule::find(rule).map_or("", Rule::family);
        for name in [rule, family] {
            if let Some((_, subject)) = SUBJECTS.iter().find(|(other, _)| *other == name) {
                return *subject;
            }
        }
        Subject::Files
    }

    /// The origin of the events that a finding misses.
    pub fn event_origin(self) -> EventOrigin {
        match self {
            Subject::Enablements
            | Subject::ManagedCode
            | Subject::Rundowns
            | Subject::ClrStacks => EventOrigin::Clr,
            Subject::KernelStacks | Subject::Kernel => EventOrigin::Kernel,
            Subject::Files | Subject::Addresses | Subject::Parts | Subject::Activities => {
                EventOrigin::Any
            }
        }
    }

    /// Whether a trace has it.
    pub fn is_in(self, facts: &Facts) -> bool {
        match self {
            Subject::Files => true,
            Subject::Enablements => facts.admission.enabled.iter().any(|e| e.with.is_some()),
            Subject::ManagedCode => facts.machine.processes().iter().any(Process::is_managed),
            Subject::Rundowns => facts.has_rundown(),
            Subject::Addresses => facts.machine.tallies().iter().any(|tally| tally.frames > 0),
            Subject::Parts => facts.is_joined(),
            Subject::ClrStacks => has_stacks(facts, Origin::ClrStack),
            Subject::KernelStacks => has_stacks(facts, Origin::KernelStack),
            Subject::Kernel => {
                facts.machine.census().processes > 0
                    || facts.sampling.requested.is_some()
                    || facts.sampling.last().is_some()
            }
            Subject::Activities => facts.activities.any(),
        }
    }

    /// Why a rule is not applicable to a trace without it.
    pub fn absence(self) -> &'static str {
        match self {
            Subject::Files => "no file",
            Subject::Enablements => "it is not known what the sessions were enabled with",
            Subject::ManagedCode => "no managed code",
            Subject::Rundowns => "no rundown",
            Subject::Addresses => "no addresses",
            Subject::Parts => "one session",
            Subject::ClrStacks => "no stacks of the CLR",
            Subject::KernelStacks => "no stacks of the kernel",
            Subject::Kernel => "no processes and no samples of the kernel",
            Subject::Activities => "no activities",
        }
    }
}

/// Whether a process has stacks of an origin.
fn has_stacks(facts: &Facts, origin: Origin) -> bool {
    facts.machine.processes().iter().any(|process| {
        let tallies = process.tallies();
        let tally = tallies.get(origin as usize);
        tally.is_some_and(|tally| tally.stacks > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::super::RULES;
    use super::*;

    #[test]
    fn subjects_and_losses_name_rules_and_families() {
        for (name, _) in SUBJECTS {
            assert!(
                RULES.iter().any(|r| r.id == *name || r.family() == *name),
                "{name}"
            );
        }
        assert!(LOSSES.iter().all(|id| Rule::find(id).is_some()));
        assert_eq!(RULES.iter().filter_map(|rule| loss_of(rule.id)).count(), 5);
        for rule in RULES {
            let known = SUBJECTS
                .iter()
                .any(|(n, _)| *n == rule.id || *n == rule.family());
            assert!(known, "{}", rule.id);
        }
    }

    #[test]
    fn of_prefers_the_rule_to_its_family() {
        assert_eq!(Subject::of("rundown.missing"), Subject::ManagedCode);
        assert_eq!(Subject::of("rundown.unclosed"), Subject::Rundowns);
    }
}
