//! How sessions enabled providers: [`declared`] by the user, or [`recorded`] in the trace.
//! [`infer`] finds the rest from the events.
//!
//! [`infer`]: super::infer

mod declared;
mod recorded;
mod runtime;

use std::collections::BTreeMap;

use etl_analysis::machine::Counted;
use etl_control::enable::{Enablement, EventKey, Variant};
use etl_format::read::EventHeader;
use etl_format::{Clock, Guid, Ticks};
use etl_schema::clr::keyword::{JIT, LOADER, NGEN};
use etl_schema::providers::CLR_RUNDOWN;
use foldhash::HashMap;

use crate::TraceOrigin;
pub(crate) use declared::words;
pub use declared::{Declaration, Enabled};
use recorded::{RecordedEnd, RecordedSession};
pub(crate) use runtime::{CORE_SKU, Known, On, RuntimeOn, is_core};

/// The event with the manifest of an `EventSource`: every session gets it.
pub(super) const MANIFEST: u16 = 0xfffe;

/// The keywords by which a rundown lists code.
const CODE: u64 = LOADER | JIT | NGEN;

etl_schema::named! {
    /// How an enablement is known.
    EnablementSource {
        /// The user declared it: there is no other enablement of the provider.
        Declared "declared",
        /// The trace records it; others may not be recorded.
        Recorded "recorded",
        /// It is the smallest that explains the events.
        Inferred "inferred",
    }
}

/// A kind of events that no known enablement of their provider admits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAdmitted {
    pub provider: Guid,
    pub event: EventKey,
    pub counted: Counted,
    /// How the provider's enablements are known.
    pub source: EnablementSource,
}

/// A kind of event as the enable rule sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    provider: Guid,
    keyword: u64,
    id: u16,
    level: u8,
}

/// Counts of events by kind, and the known enablements.
#[derive(Clone, Debug)]
pub struct Admission {
    seen: Vec<(Key, Counted)>,
    /// The index of each kind in `seen`.
    indexes: HashMap<Key, usize>,
    /// Enablements, declared ones first, in the order in which they appeared.
    pub enabled: Vec<Enabled>,
    /// Enablements by sessions that wrote none of the files.
    elsewhere: Vec<Enabled>,
    /// Whether sessions that nobody declared may have enabled the declared providers as well.
    has_other_sessions: bool,
    /// Sessions that the trace names.
    pub sessions: Vec<RecordedSession>,
    /// Ends of sessions and enablements that the trace records.
    ends: Vec<RecordedEnd>,
}

impl Admission {
    /// No events yet, with the enablements that the user declared, of a trace of an origin: a mask
    /// of 0 requests all keywords of ETW, and none of EventPipe.
    #[must_use]
    pub fn new(declaration: &Declaration, clock: &Clock, origin: TraceOrigin) -> Self {
        let mut enabled = Vec::new();
        let mut elsewhere = Vec::new();
        for mut declared in declaration.enabled.iter().cloned() {
            if let Some(since) = declared.since {
                declared.from = Some(clock.ticks_at(since));
            }
            if let Some(until) = declared.until {
                declared.to = Some(clock.ticks_at(until));
            }
            if origin == TraceOrigin::EventPipe
                && let Some(with) = &mut declared.with
            {
                with.variant = Variant::EventPipe;
            }
            if declared.is_elsewhere {
                elsewhere.push(declared);
            } else {
                enabled.push(declared);
            }
        }
        Admission {
            seen: Vec::new(),
            indexes: HashMap::default(),
            enabled,
            elsewhere,
            has_other_sessions: declaration.has_other_sessions,
            sessions: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Kinds of events that are kept.
    const MAX_KINDS: usize = 1 << 16;
    /// Enablements that are kept.
    const MAX_ENABLED: usize = 1 << 12;

    /// The index of an event's kind; `None` if too many kinds are kept.
    pub(super) fn index(&mut self, header: &EventHeader) -> Option<usize> {
        let descriptor = &header.descriptor;
        let key = Key {
            provider: header.provider,
            keyword: descriptor.keyword,
            id: descriptor.id,
            level: descriptor.level,
        };
        if let Some(&index) = self.indexes.get(&key) {
            return Some(index);
        }
        if self.seen.len() >= Self::MAX_KINDS {
            return None;
        }
        self.seen.push((key, Counted::default()));
        self.indexes.insert(key, self.seen.len() - 1);
        Some(self.seen.len() - 1)
    }

    /// Counts an event of the kind with an index.
    #[inline]
    pub(super) fn count(&mut self, index: Option<u32>, timestamp: Ticks) {
        if let Some((_, counted)) = index.and_then(|index| self.seen.get_mut(index as usize)) {
            counted.add(timestamp);
        }
    }

    #[must_use]
    pub fn providers(&self) -> BTreeMap<Guid, Vec<(EventKey, Counted)>> {
        let mut out: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut seen = self.seen.clone();
        seen.sort_unstable_by_key(|(key, _)| *key);
        for (key, counted) in seen {
            let event = EventKey {
                id: key.id,
                level: key.level,
                keyword: key.keyword,
            };
            out.entry(key.provider).or_default().push((event, counted));
        }
        out
    }

    /// The enablements of a provider with known masks, each with its masks. If the user declared
    /// some, these are all, and what the trace records is ignored.
    pub fn enablements(
        &self,
        provider: Guid,
    ) -> impl Iterator<Item = (&Enabled, &Enablement)> + Clone {
        let of_provider = self
            .enabled
            .iter()
            .filter(move |enabled| enabled.provider == provider);
        let all = of_provider.filter_map(|enabled| Some((enabled, enabled.with.as_ref()?)));
        let source = all.clone().map(|(enabled, _)| enabled.source).min();
        all.filter(move |(enabled, _)| Some(enabled.source) == source)
    }

    /// Whether a known enablement of the rundown provider requests code. Sessions for garbage
    /// collections only (PerfView's `-GCCollectOnly`, mask 0x1000000101) request none on purpose.
    pub fn requests_code(&self) -> bool {
        self.enablements(CLR_RUNDOWN)
            .any(|(_, with)| with.any == 0 || with.any & CODE != 0)
    }

    /// How the enablements of a provider are known; `None` if none is.
    pub fn source(&self, provider: Guid) -> Option<EnablementSource> {
        let (enabled, _) = self.enablements(provider).next()?;
        Some(enabled.source)
    }

    /// Whether the user declared all enablements of a provider: then what they do not request is
    /// wrong, and what they request is missing if it is not there.
    pub fn is_closed(&self, provider: Guid) -> bool {
        !self.has_other_sessions && self.source(provider) == Some(EnablementSource::Declared)
    }

    /// All enablements of a provider with known masks, the ones of sessions that wrote none of the
    /// files included.
    pub fn all_enablements(&self, provider: Guid) -> impl Iterator<Item = (&Enabled, &Enablement)> {
        let elsewhere = self.elsewhere.iter().filter_map(move |enabled| {
            let with = enabled.with.as_ref()?;
            (enabled.provider == provider).then_some((enabled, with))
        });
        self.enablements(provider).chain(elsewhere)
    }

    /// When the session of each declared enablement of a provider was stopped, the last of them;
    /// `None` if that is not known of all.
    pub fn stopped(&self, provider: Guid, clock: &Clock) -> Option<Ticks> {
        let mut last = None;
        for (enabled, _) in self.enablements(provider) {
            last = last.max(Some(clock.ticks_at(enabled.stopped?)));
        }
        last
    }

    /// Whether a known enablement of a provider applies to some processes or ids only.
    pub fn is_limited(&self, provider: Guid) -> bool {
        self.enablements(provider)
            .any(|(enabled, _)| enabled.is_limited)
    }

    /// When the first known enablement of a provider began; `Ticks::MIN` if its time is not known.
    pub fn first_enabled(&self, provider: Guid) -> Option<Ticks> {
        self.enablements(provider)
            .map(|(enabled, _)| enabled.span().from)
            .min()
    }

    /// Whether a known enablement of a provider explains events, the first of which was recorded at
    /// a time: it admits them, and did not begin later. PerfView enables the runtime provider again
    /// for its rundown, with other keywords, which do not explain the events before the rundown.
    /// Events before all enablements are explained by the first one.
    pub fn explains(&self, provider: Guid, event: &EventKey, first: Option<Ticks>) -> bool {
        let begin = self.first_enabled(provider);
        self.enablements(provider).any(|(enabled, with)| {
            let from = enabled.span().from;
            let is_later = enabled.source == EnablementSource::Recorded
                && Some(from) != begin
                && first.is_some_and(|first| first < from);
            with.admits(event) && !is_later
        })
    }

    /// The enablements that made a provider raise events: the known ones, and the ones of sessions
    /// that wrote none of the files.
    pub fn raising(&self, provider: Guid) -> impl Iterator<Item = &Enablement> + Clone {
        let elsewhere = self
            .elsewhere
            .iter()
            .filter(move |enabled| enabled.provider == provider)
            .filter_map(|enabled| enabled.with.as_ref());
        self.enablements(provider)
            .map(|(_, with)| with)
            .chain(elsewhere)
    }

    /// Kinds of events that no known enablement of their provider explains; none for providers
    /// without a known enablement.
    #[must_use]
    pub fn not_admitted(&self) -> Vec<NotAdmitted> {
        let mut out = Vec::new();
        for (provider, kinds) in self.providers() {
            let Some(source) = self.source(provider) else {
                continue;
            };
            for (event, counted) in kinds {
                if event.id != MANIFEST && !self.explains(provider, &event, counted.first) {
                    out.push(NotAdmitted {
                        provider,
                        event,
                        counted,
                        source,
                    });
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn declare(enabled: &[Enabled]) -> Declaration {
        Declaration {
            enabled: enabled.to_vec(),
            has_other_sessions: false,
        }
    }
}
