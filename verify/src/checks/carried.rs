//! Which losses may have taken an event: those of the files that have events of its kind.

use etl_analysis::Machine;
use etl_analysis::files::FileFacts;
use etl_analysis::loss::Loss;
use etl_format::Ticks;

use super::Facts;

/// Whose events a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Those of the CLR's providers.
    Clr,
    /// Those of the kernel.
    Kernel,
    /// Any.
    Any,
}

impl Carried {
    fn is_in(self, file: &FileFacts) -> bool {
        match self {
            Carried::Clr => file.has_clr,
            Carried::Kernel => file.has_kernel,
            Carried::Any => true,
        }
    }
}

/// The losses that may have taken events of each kind.
#[derive(Clone, Debug, Default)]
pub(super) struct LossTimes([InOrder; 3]);

impl LossTimes {
    /// Those of a machine. A file with the kernel's events and none of the CLR's had none of the
    /// CLR's to lose where another file has them; and the other way round. What a file without
    /// events of either kind lost may be any.
    pub fn new(machine: &Machine) -> Self {
        LossTimes(
            [Carried::Clr, Carried::Kernel, Carried::Any].map(|carried| {
                let is_anywhere = machine.files().iter().any(|file| carried.is_in(file));
                let may_have = |loss: &&Loss| {
                    let file = machine.files().get(loss.source);
                    !is_anywhere
                        || file.is_none_or(|f| carried.is_in(f) || !(f.has_clr || f.has_kernel))
                };
                InOrder::new(machine.losses().iter().filter(may_have).copied())
            }),
        )
    }
}

/// Losses in the order of their beginnings.
#[derive(Clone, Debug, Default)]
struct InOrder {
    losses: Vec<Loss>,
    /// For each of them the latest end so far.
    latest: Vec<Ticks>,
}

impl InOrder {
    fn new(losses: impl Iterator<Item = Loss>) -> Self {
        let mut losses: Vec<Loss> = losses.collect();
        losses.sort_unstable();
        let latest = losses.iter().scan(Ticks::MIN, |latest, loss| {
            *latest = loss.to.unwrap_or(Ticks::MAX).max(*latest);
            Some(*latest)
        });
        InOrder {
            latest: latest.collect(),
            losses,
        }
    }

    /// The first one that may have happened within a span: it is the first that does not end before
    /// the span, unless that begins after it.
    fn first_in(&self, from: Option<Ticks>, to: Option<Ticks>) -> Option<&Loss> {
        let from = from.unwrap_or(Ticks::MIN);
        let loss = self
            .losses
            .get(self.latest.partition_point(|&latest| latest < from))?;
        Some(loss).filter(|loss| loss.touches(None, to))
    }
}

impl Facts {
    /// The first loss, if any, that may have taken an event within a span.
    pub fn lost(&self, carried: Carried, from: Option<Ticks>, to: Option<Ticks>) -> Option<&Loss> {
        let LossTimes([clr, kernel, any]) = &self.loss_times;
        let losses = match carried {
            Carried::Clr => clr,
            Carried::Kernel => kernel,
            Carried::Any => any,
        };
        losses.first_in(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_analysis::loss::LossKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn first_in_is_the_first_loss_that_touches_the_span(
            losses in prop::collection::vec(prop::option::of((0..20i64, 0..20i64)), 0..6),
            open in prop::collection::vec(any::<(bool, bool)>(), 6),
            from in prop::option::of(0..20i64),
            to in prop::option::of(0..20i64),
        ) {
            let from = from.map(Ticks::new);
            let to = to.map(Ticks::new);
            let loss = |(span, (from, to)): (Option<(i64, i64)>, (bool, bool))| {
                let (a, b) = span.unwrap_or_default();
                let a = Ticks::new(a);
                let b = Ticks::new(b);
                Loss {
                    from: (!from).then_some(a.min(b)),
                    to: (!to).then_some(a.max(b)),
                    processor: None,
                    what: LossKind::EventsLost,
                    source: 0,
                    session: 0,
                }
            };
            let mut losses: Vec<Loss> = losses.into_iter().zip(open).map(loss).collect();
            losses.sort_unstable();
            let known = InOrder::new(losses.iter().copied());
            let expected = losses.iter().find(|loss| loss.touches(from, to));
            prop_assert_eq!(known.first_in(from, to), expected);
        }
    }
}
