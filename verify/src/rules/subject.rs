//! What rules look at, and whether a trace has any of it.

use etl_analysis::address::Origin;
use etl_analysis::loss::LossKind;
use etl_analysis::machine::Process;

use super::Rule;
use crate::checks::Facts;
use crate::checks::carried::Carried;

/// What a rule looks at. A rule without anything to look at is not applicable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The files and their records.
    Files,
    /// What sessions were enabled with.
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

/// Subjects of rules, and of families of rules. A rule's precedes its family's.
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

/// Rules whose findings are losses, so that they leave the questions of other rules open.
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

/// The kind of loss that the findings of a rule are about, where losses of this kind have times.
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
        let of = |name: &str| {
            SUBJECTS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, s)| *s)
        };
        let family = || of(Rule::find(rule)?.family());
        of(rule).or_else(family).unwrap_or(Subject::Files)
    }

    /// Whose events a finding misses.
    pub fn carried(self) -> Carried {
        match self {
            Subject::Enablements
            | Subject::ManagedCode
            | Subject::Rundowns
            | Subject::ClrStacks => Carried::Clr,
            Subject::KernelStacks | Subject::Kernel => Carried::Kernel,
            Subject::Files | Subject::Addresses | Subject::Parts | Subject::Activities => {
                Carried::Any
            }
        }
    }

    /// Whether a trace has it.
    pub fn is_in(self, facts: &Facts) -> bool {
        let any = |of: fn(&Process) -> bool| facts.machine.processes().iter().any(of);
        let stacks = |origin| {
            facts
                .machine
                .processes()
                .iter()
                .any(|p| has_stacks(p, origin))
        };
        match self {
            Subject::Files => true,
            Subject::Enablements => facts.admission.enabled.iter().any(|e| e.with.is_some()),
            Subject::ManagedCode => any(Process::is_managed),
            Subject::Rundowns => facts.has_rundown(),
            Subject::Addresses => facts.machine.tallies().iter().any(|tally| tally.frames > 0),
            Subject::Parts => facts.is_joined(),
            Subject::ClrStacks => stacks(Origin::ClrStack),
            Subject::KernelStacks => stacks(Origin::KernelStack),
            Subject::Kernel => {
                let is_kernel =
                    facts.machine.census().processes > 0 || facts.sampling.asked.is_some();
                is_kernel || facts.sampling.last().is_some()
            }
            Subject::Activities => facts.activities.any(),
        }
    }

    /// What a trace without it has none of.
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

fn has_stacks(process: &Process, origin: Origin) -> bool {
    let mut tallies = Origin::ALL.into_iter().zip(process.tallies());
    tallies.any(|(of, tally)| of == origin && tally.stacks > 0)
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
