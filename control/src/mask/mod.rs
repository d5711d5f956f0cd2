//! Explanation of a mask and a level: the events they select, and the events they lack.

use std::collections::BTreeSet;

use crate::clr::{Enumeration, Rundown, Runtime, VERBOSE};
use crate::enable::Enablement;
use etl_format::Guid;
use etl_schema::clr::keyword::{END_ENUMERATION, END_RUNDOWN, OVERRIDE_NGEN, START_ENUMERATION};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{KeywordNames, Provider, Registry, TableEvent, TableSet, errata};
use etl_schema::{EventSchema, Identity};

mod remarks;

pub use remarks::Remark;

/// The events that a mask selects, and the events that it only seems to select.
#[derive(Clone, Debug, Default)]
pub struct Explanation<'a> {
    /// Names of its bits.
    pub names: Vec<&'a str>,
    /// Bits that mean nothing to the provider.
    pub unnamed: u64,
    /// Events that the CLR raises for it and the session gets.
    pub raised: Vec<Raised<'a>>,
    /// Events that the CLR does not raise for this mask, although the session admits their keywords
    /// and level.
    pub suppressed: Vec<Suppressed<'a>>,
    /// Events of these keywords that only a higher level of the session selects.
    pub too_verbose: Vec<Raised<'a>>,
    /// Remarks to read before recording with it.
    pub remarks: Vec<Remark>,
}

/// An event that a mask selects, in all its versions.
#[derive(Clone, Debug)]
pub struct Raised<'a> {
    /// Its newest version.
    pub event: &'a TableEvent,
    /// The versions, in order.
    pub versions: Vec<u8>,
    /// The levels of a session, from 1 to 5, at which it is raised.
    pub levels: Vec<u8>,
    /// The levels at which .NET Core raises it: fewer than `levels` if only .NET Framework raises
    /// it, or only at a higher level. The same for other providers.
    pub core_levels: Vec<u8>,
}

/// An event that a mask names and does not select.
#[derive(Clone, Debug)]
pub struct Suppressed<'a> {
    /// Its newest version.
    pub event: &'a TableEvent,
    /// A mask that selects it: the explained mask without bits that mean nothing, and with as few
    /// changes as possible. `None` if there is no such mask.
    pub suggested_mask: Option<u64>,
}

/// Explains a mask of a provider, as this set of tables describes it. The CLR has rules of its own.
///
/// ```
/// use etl_control::mask::explain;
/// use etl_schema::tables::{Registry, TableSet};
///
/// let rundown = Registry::builtin().find("rundown").ok_or("built in")?;
/// let explanation = explain(TableSet::Shipped, rundown, 0x138, 5);
/// assert!(explanation.names.contains(&"EndRundownKeyword"));
/// let raised = explanation.raised.iter().any(|raised| raised.event.schema.name.contains("DCEnd"));
/// assert!(raised, "the rundown lists what is loaded at the end");
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn explain(tables: TableSet, provider: &Provider, mask: u64, level: u8) -> Explanation<'_> {
    let KeywordNames { names, unnamed } = provider.keyword_names(mask);
    let rules = Rules {
        provider,
        tables,
        kind: ProviderKind::of(provider.guid),
    };
    let mut explanation = Explanation {
        names,
        unnamed,
        ..Explanation::default()
    };
    for Newest {
        event, versions, ..
    } in newest(provider)
    {
        let levels: Vec<u8> = (1..=VERBOSE)
            .filter(|&level| rules.selects(event, mask, level))
            .collect();
        let core_levels = levels
            .iter()
            .copied()
            .filter(|&level| rules.selects_in_core(event, mask, level))
            .collect();
        let mut raised = Raised {
            event,
            versions,
            levels,
            core_levels,
        };
        if rules.selects(event, mask, level) {
            explanation.raised.push(raised);
        } else if let Some(older) = as_older(event)
            && rules.selects(&older, mask, level)
        {
            raised.levels = (1..=VERBOSE)
                .filter(|&level| rules.selects(&older, mask, level))
                .collect();
            explanation.raised.push(raised);
        } else if rules.admitted(event, mask, level) && !is_leftover(raised.event) {
            let suggested_mask = rules.suggested_mask(event, mask, level);
            // A form that only other levels have is not missing at this one.
            let other_form = suggested_mask.is_none()
                && (1..=VERBOSE).any(|l| rules.suggested_mask(event, mask, l).is_some());
            let is_at_higher_level = raised.levels.iter().any(|&l| l > level) && level != 0;
            if is_at_higher_level {
                explanation.too_verbose.push(raised);
            } else if raised.levels.is_empty() && !other_form {
                explanation.suppressed.push(Suppressed {
                    event,
                    suggested_mask,
                });
            }
        } else if raised.levels.iter().any(|&l| l > level) && level != 0 {
            explanation.too_verbose.push(raised);
        }
    }
    explanation.remarks = remarks::on_mask(provider, mask, level, tables, &explanation);
    explanation
}

/// The event as older runtimes write it, if its level or its keywords differ there. For example,
/// .NET Framework raises GCGenerationRange (23) for the GC keyword.
fn as_older(event: &TableEvent) -> Option<TableEvent> {
    let older = event.older?;
    let mut out = event.clone();
    out.schema.level.value = older.level;
    out.schema.keywords = older.keywords;
    Some(out)
}

/// Whether only the first release raised the event under the runtime provider.
fn is_leftover(event: &TableEvent) -> bool {
    let Identity::Modern { id, .. } = event.schema.identity else {
        return false;
    };
    matches!(id, 135..=140 | 149 | 150)
        && ProviderKind::of(event.schema.provider) == ProviderKind::Runtime
}

struct Newest<'a> {
    id: u16,
    /// The newest version of the event.
    event: &'a TableEvent,
    versions: Vec<u8>,
}

/// Every event once, in its newest version.
fn newest(provider: &Provider) -> Vec<Newest<'_>> {
    let mut out: Vec<Newest<'_>> = Vec::new();
    for event in &provider.events {
        let Identity::Modern { id, version } = event.schema.identity else {
            continue;
        };
        match out.iter_mut().find(|newest| newest.id == id) {
            Some(newest) => {
                if newest.versions.last().is_none_or(|&last| last < version) {
                    newest.event = event;
                }
                newest.versions.push(version);
            }
            None => out.push(Newest {
                id,
                event,
                versions: vec![version],
            }),
        }
    }
    out
}

/// The providers that the CLR has rules for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProviderKind {
    Runtime,
    Rundown,
    /// The private provider and the providers of Windows: only the rules of sessions apply.
    Other,
}

impl ProviderKind {
    fn of(provider: Guid) -> Self {
        match provider {
            CLR_RUNTIME => ProviderKind::Runtime,
            CLR_RUNDOWN => ProviderKind::Rundown,
            _ => ProviderKind::Other,
        }
    }
}

/// The rules by which a set of tables determines which events a mask selects.
struct Rules<'a> {
    provider: &'a Provider,
    tables: TableSet,
    kind: ProviderKind,
}

impl Rules<'_> {
    /// The enable rule.
    fn admitted(&self, event: &TableEvent, mask: u64, level: u8) -> bool {
        let session = Enablement::new(level, mask);
        session.admits_level(event.schema.level.value)
            && session.admits_keyword(event.schema.keywords)
    }

    /// Whether a session that is the only one gets the event.
    fn selects(&self, event: &TableEvent, mask: u64, level: u8) -> bool {
        let raised = match (self.tables, self.kind) {
            (_, ProviderKind::Other) => true,
            (TableSet::Shipped, ProviderKind::Rundown) => {
                Rundown::new(mask, level).raises(&event.schema)
            }
            (TableSet::Shipped, ProviderKind::Runtime) => {
                Runtime::new(mask, level).raises(&event.schema)
            }
            // The pages print other keywords and levels for an event. Their tables of combinations
            // say which further keywords it needs, and the shipped rules agree with them.
            (TableSet::Documented, kind) => match self.shipped_event(event) {
                Some(_) if kind == ProviderKind::Rundown => asks(event, mask, level),
                Some(shipped) => Runtime::new(mask, level).raises(shipped),
                None => false,
            },
        };
        raised && self.admitted(event, mask, level)
    }

    /// Whether a session that is the only one gets the event from .NET Core. The event passes
    /// [`Rules::selects`].
    fn selects_in_core(&self, event: &TableEvent, mask: u64, level: u8) -> bool {
        match (self.tables, self.kind) {
            (TableSet::Shipped, ProviderKind::Runtime) => {
                Runtime::new(mask, level).in_core().raises(&event.schema)
            }
            _ => true,
        }
    }

    /// The shipped event that corresponds to an event of the reference pages.
    fn shipped_event(&self, event: &TableEvent) -> Option<&'static EventSchema> {
        let shipped = Registry::builtin().event(self.provider.guid, event.shipped?)?;
        Some(&shipped.schema)
    }

    /// A mask that selects the event: `mask` with missing bits and without bits that prevent it.
    fn suggested_mask(&self, event: &TableEvent, mask: u64, level: u8) -> Option<u64> {
        let named: u64 = self
            .provider
            .keywords
            .iter()
            .fold(0, |all, keyword| all | keyword.mask);
        let base = mask & named;
        let without = base & !OVERRIDE_NGEN;
        // Keywords of enumerations are tried before others, and one bit before two.
        let enumerations = [START_ENUMERATION, END_ENUMERATION, END_RUNDOWN];
        let enumerations = enumerations.into_iter().filter(|bit| named & bit != 0);
        let others = self.provider.keywords.iter().map(|keyword| keyword.mask);
        let single_bits = enumerations.clone().chain(others.clone());
        let pairs = enumerations.flat_map(|a| others.clone().map(move |b| a | b));
        let additions: Vec<u64> = single_bits.chain(pairs).collect();
        let mut candidates = std::iter::once(without)
            .chain(additions.iter().map(|bits| base | bits))
            .chain(additions.iter().map(|bits| without | bits));
        candidates.find(|&candidate| self.selects(event, candidate, level))
    }
}

/// Whether a mask enables the enumeration to which an event of the rundown provider belongs.
fn asks(event: &TableEvent, mask: u64, level: u8) -> bool {
    let rundown = Rundown::new(mask, level);
    let symbol = &*event.schema.name;
    let both = event.schema.keywords == 0 || symbol == "ThreadDC" || symbol == "StackTrace";
    Enumeration::ALL.into_iter().any(|which| {
        let part = match which {
            Enumeration::Start => "DCStart",
            Enumeration::End => "DCEnd",
        };
        rundown.is_enabled(which) && (both || symbol.contains(part))
    })
}

impl Explanation<'_> {
    /// Errata on which this explanation depends: about the mask as a whole, about its keywords, and
    /// about the events that it selects.
    #[must_use]
    pub fn errata(&self, provider: &Provider, mask: u64) -> Vec<&'static str> {
        let event_errata: BTreeSet<_> = self
            .raised
            .iter()
            .flat_map(|raised| raised.event.errata())
            .collect();
        let mut ids = Vec::new();
        for erratum in errata() {
            if erratum.is_of_mask(provider, mask)
                || erratum.is_of_keyword(provider, mask)
                || event_errata.contains(&*erratum.id)
            {
                ids.push(erratum.id.as_str());
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests;
