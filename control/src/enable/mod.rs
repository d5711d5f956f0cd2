//! The enable rule: whether a session receives an event, by level, keywords and ids.
//!
//! One pure function, [`Enablement::admits`], is the rule for modern providers (manifest,
//! TraceLogging, EventSource). With session level `S`, event level `E`, session masks `any` and
//! `all`, event keyword `K`:
//!
//! | level | passes |
//! |---|---|
//! | `E` = 0 | always |
//! | `S` = 0 | always: the session gets all levels |
//! | `E` <= `S` | yes |
//! | `E` > `S` | no |
//!
//! | keyword | passes |
//! |---|---|
//! | `K` = 0 | yes, unless the session ignores events without keyword |
//! | `any` = 0 | as if all 64 bits of `any` were set |
//! | `K & any` = 0 | no |
//! | `K & all` != `all` | no |
//! | otherwise | yes |
//!
//! | ids | passes |
//! |---|---|
//! | no filter | yes |
//! | in: listed | yes; others no |
//! | out: listed | no; others yes |
//!
//! All three must pass. A mask of 32 ones is not "all": it leaves out the keywords above bit 31.
//! Older reference pages say that `all` is ignored when `any` is 0; [`Variant::Legacy`] does so.
//!
//! Classic providers (MOF, WPP) receive level and mask and decide themselves
//! ([`ClassicEnablement`]). ETW filters nothing for them. If several sessions enable such a
//! provider, only the last one receives its events.
//!
//! [`Scope`] is the filter by process, which does not depend on level, keyword and id.
//!
//! Source: the reference of `EnableTraceEx2`, checked against the masks of real sessions.

use core::fmt;

mod classic;
mod filters;
mod properties;

pub use classic::ClassicEnablement;
pub use filters::{MAX_IDS, MAX_PROCESSES, ProcessKey, Scope};
pub use properties::EnableProperties;

/// The properties of an event on which the rule depends.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct EventKey {
    /// Id of the event within its provider.
    pub id: u16,
    /// Level: 1 critical to 5 verbose, higher is more verbose; 0 always passes.
    pub level: u8,
    /// Keywords, one bit each.
    pub keyword: u64,
}

impl fmt::Debug for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventKey")
            .field("id", &self.id)
            .field("level", &self.level)
            .field("keyword", &format_args!("{:#x}", self.keyword))
            .finish()
    }
}

/// The variants of the rule: the reference pages of ETW have described it in two ways, and
/// EventPipe has another meaning of a mask of 0.
///
/// ```
/// use etl_control::enable::{Enablement, Variant};
///
/// // All keywords of `all` are required, although `any` is 0.
/// let current = Enablement { all: 0x8, ..Enablement::new(5, 0) };
/// assert!(!current.admits_keyword(0x10));
/// let legacy = Enablement { variant: Variant::Legacy, ..current };
/// assert!(legacy.admits_keyword(0x10));
///
/// let event_pipe = Enablement { variant: Variant::EventPipe, ..Enablement::new(5, 0) };
/// assert!(event_pipe.admits_keyword(0) && !event_pipe.admits_keyword(0x10));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The current reference: `all` is always checked.
    #[default]
    Current,
    /// Older reference pages: `all` is ignored if `any` is 0.
    Legacy,
    /// The rule of EventPipe, the sessions of .NET without ETW: if `any` is 0, only events without
    /// keyword pass.
    EventPipe,
}

/// A filter by event id. A session can list 64 ids at most.
///
/// ```
/// use etl_control::enable::{Enablement, EventKey, IdFilter};
///
/// let mut session = Enablement::new(5, 0);
/// session.ids = IdFilter::Out(vec![145]);
/// assert!(session.admits(&EventKey { id: 143, level: 4, keyword: 0x10 }));
/// assert!(!session.admits(&EventKey { id: 145, level: 4, keyword: 0x10 }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdFilter {
    /// No filter: all ids pass.
    #[default]
    Any,
    /// Only these ids pass.
    In(Vec<u16>),
    /// All ids but these pass.
    Out(Vec<u16>),
}

impl IdFilter {
    /// Whether an event of this id passes.
    #[must_use]
    pub fn admits(&self, id: u16) -> bool {
        match self {
            IdFilter::Any => true,
            IdFilter::In(ids) => ids.contains(&id),
            IdFilter::Out(ids) => !ids.contains(&id),
        }
    }
}

/// The largest number of sessions that can enable a modern provider at once.
pub const MAX_SESSIONS: usize = 8;

/// How a session enabled a provider. If the session enables it again, this is replaced.
///
/// ```
/// use etl_control::enable::{Enablement, EventKey};
///
/// let session = Enablement { ignore_keyword_0: true, ..Enablement::new(4, 0x10) };
/// assert!(session.admits(&EventKey { id: 1, level: 4, keyword: 0x18 }));
/// assert!(!session.admits(&EventKey { id: 1, level: 5, keyword: 0x18 }), "too verbose");
/// assert!(!session.admits(&EventKey { id: 1, level: 4, keyword: 0x8 }), "another keyword");
/// assert!(!session.admits(&EventKey { id: 1, level: 4, keyword: 0 }), "no keyword");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Enablement {
    /// Highest level; 0 for all levels.
    pub level: u8,
    /// Events have any of these keywords; 0 for all keywords.
    pub any: u64,
    /// Events have all of these keywords.
    pub all: u64,
    /// Whether events without keyword are left out (`EVENT_ENABLE_PROPERTY_IGNORE_KEYWORD_0`).
    pub ignore_keyword_0: bool,
    /// Filter by event id.
    pub ids: IdFilter,
    /// Variant of the rule.
    pub variant: Variant,
}

impl fmt::Debug for Enablement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Enablement {
            level,
            any,
            all,
            ignore_keyword_0,
            ids,
            variant,
        } = self;
        f.debug_struct("Enablement")
            .field("level", level)
            .field("any", &format_args!("{any:#x}"))
            .field("all", &format_args!("{all:#x}"))
            .field("ignore_keyword_0", ignore_keyword_0)
            .field("ids", ids)
            .field("variant", variant)
            .finish()
    }
}

impl Enablement {
    /// An enablement with a level and a mask, as in command lines.
    #[must_use]
    pub fn new(level: u8, any: u64) -> Self {
        Enablement {
            level,
            any,
            ..Enablement::default()
        }
    }

    /// Whether the session gets the event.
    #[must_use]
    pub fn admits(&self, event: &EventKey) -> bool {
        self.admits_level(event.level)
            && self.admits_keyword(event.keyword)
            && self.ids.admits(event.id)
    }

    /// The level part of the rule.
    ///
    /// ```
    /// use etl_control::enable::Enablement;
    ///
    /// assert!(Enablement::new(0, 0).admits_level(5), "level 0 of a session means all levels");
    /// assert!(Enablement::new(2, 0).admits_level(0), "level 0 of an event always passes");
    /// assert!(!Enablement::new(2, 0).admits_level(3));
    /// ```
    #[must_use]
    pub fn admits_level(&self, level: u8) -> bool {
        level == 0 || self.level == 0 || level <= self.level
    }

    /// The keyword part of the rule.
    #[must_use]
    pub fn admits_keyword(&self, keyword: u64) -> bool {
        if keyword == 0 {
            return !self.ignore_keyword_0;
        }
        let Masks { any, all } = self.masks();
        keyword & any != 0 && keyword & all == all
    }

    /// The masks by the variant of the rule.
    fn masks(&self) -> Masks {
        let all = if self.any == 0 && self.variant == Variant::Legacy {
            0
        } else {
            self.all
        };
        Masks {
            any: if self.any == 0 && self.variant != Variant::EventPipe {
                u64::MAX
            } else {
                self.any
            },
            all,
        }
    }
}

/// Masks for the keyword part of the rule.
struct Masks {
    /// An event must have at least one of these bits.
    any: u64,
    /// An event must have all of these bits.
    all: u64,
}

/// The enablement that a provider receives for all its sessions together: it raises an event if at
/// least one of them may want it.
///
/// ETW then applies the rule of each session to the raised event. So a session can get an event
/// that the provider raised because of another session's mask.
///
/// ```
/// use etl_control::enable::{CombinedEnablement, Enablement};
///
/// let sessions = [Enablement::new(4, 0x8), Enablement::new(5, 0x10)];
/// let both = CombinedEnablement::of(&sessions);
/// assert!(both.raises(5, 0x8), "level of one session, keyword of the other");
/// assert!(!sessions.iter().any(|session| session.admits_level(5) && session.admits_keyword(0x8)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CombinedEnablement {
    /// Highest level; 0 if a session asked for all.
    pub level: u8,
    /// Union of the masks; all bits if a session asked for all.
    pub any: u64,
    /// Intersection of the masks.
    pub all: u64,
    /// Whether a session has enabled the provider.
    pub enabled: bool,
}

impl CombinedEnablement {
    /// The union of sessions.
    #[must_use]
    pub fn of<'a>(sessions: impl IntoIterator<Item = &'a Enablement>) -> Self {
        let mut union = CombinedEnablement::default();
        for session in sessions {
            let Masks { any, all } = session.masks();
            if union.enabled {
                let all_levels = union.level == 0 || session.level == 0;
                union.level = if all_levels {
                    0
                } else {
                    union.level.max(session.level)
                };
                union.any |= any;
                union.all &= all;
            } else {
                union = CombinedEnablement {
                    level: session.level,
                    any,
                    all,
                    enabled: true,
                };
            }
        }
        union
    }

    /// Whether the provider raises an event of this level and keyword.
    #[must_use]
    pub fn raises(&self, level: u8, keyword: u64) -> bool {
        let session = Enablement {
            level: self.level,
            any: self.any,
            all: self.all,
            // A union of masks has all bits if a session asked for all.
            variant: Variant::EventPipe,
            ..Enablement::default()
        };
        self.enabled && session.admits_level(level) && session.admits_keyword(keyword)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A second version of the rule, bit by bit.
    fn naively(s: &Enablement, e: &EventKey) -> bool {
        let level = if e.level == 0 || s.level == 0 {
            true
        } else {
            e.level <= s.level
        };
        let has = |mask: u64, bit: u32| mask >> bit & 1 == 1;
        let keyword = if e.keyword == 0 {
            !s.ignore_keyword_0
        } else {
            let is_all = s.any == 0 && s.variant != Variant::EventPipe;
            let some = (0..64).any(|bit| has(e.keyword, bit) && (is_all || has(s.any, bit)));
            let looked_at = !(s.variant == Variant::Legacy && s.any == 0);
            let every = (0..64).all(|bit| !has(s.all, bit) || has(e.keyword, bit));
            some && (every || !looked_at)
        };
        let id = match &s.ids {
            IdFilter::Any => true,
            IdFilter::In(ids) => ids.iter().filter(|&&i| i == e.id).count() > 0,
            IdFilter::Out(ids) => ids.iter().all(|&i| i != e.id),
        };
        level && keyword && id
    }

    /// Masks with few bits, so that they meet often; 0 and all bits now and then.
    fn mask() -> impl Strategy<Value = u64> {
        prop_oneof![
            2 => Just(0u64),
            1 => Just(u64::MAX),
            1 => Just(0xffff_ffffu64),
            6 => proptest::collection::vec(0u32..64, 1..4)
                .prop_map(|bits| bits.into_iter().fold(0, |m, b| m | 1 << b)),
        ]
    }

    fn event() -> impl Strategy<Value = EventKey> {
        (0u16..6, 0u8..8, mask()).prop_map(|(id, level, keyword)| EventKey { id, level, keyword })
    }

    fn enablement() -> impl Strategy<Value = Enablement> {
        let ids = prop_oneof![
            2 => Just(IdFilter::Any),
            1 => proptest::collection::vec(0u16..6, 0..4).prop_map(IdFilter::In),
            1 => proptest::collection::vec(0u16..6, 0..4).prop_map(IdFilter::Out),
        ];
        let variant = prop_oneof![
            Just(Variant::Current),
            Just(Variant::Legacy),
            Just(Variant::EventPipe),
        ];
        (0u8..8, mask(), mask(), any::<bool>(), ids, variant).prop_map(
            |(level, any, all, ignore_keyword_0, ids, variant)| Enablement {
                level,
                any,
                all,
                ignore_keyword_0,
                ids,
                variant,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn admits_agrees_with_the_rule_bit_by_bit(s in enablement(), e in event()) {
            prop_assert_eq!(s.admits(&e), naively(&s, &e));
        }

        #[test]
        fn admits_passes_no_less_at_a_higher_level(s in enablement(), e in event(), more in 1u8..100) {
            // Level 0 is above all others.
            let higher = Enablement { level: s.level.saturating_add(more), ..s.clone() };
            if s.level != 0 && s.admits(&e) {
                prop_assert!(higher.admits(&e));
            }
            if s.admits(&e) {
                let all_levels = Enablement { level: 0, ..s };
                prop_assert!(all_levels.admits(&e));
            }
        }

        #[test]
        fn admits_passes_no_less_with_a_wider_any(s in enablement(), e in event(), more in mask()) {
            let wider = Enablement { any: s.any | more, variant: Variant::Current, ..s.clone() };
            let s = Enablement { variant: Variant::Current, ..s };
            // No mask at all is the widest of masks.
            if s.any != 0 && s.admits(&e) {
                prop_assert!(wider.admits(&e));
            }
            if s.admits(&e) {
                let widest = Enablement { any: 0, ..s };
                prop_assert!(widest.admits(&e));
            }
        }

        #[test]
        fn admits_passes_no_more_with_a_wider_all(s in enablement(), e in event(), more in mask()) {
            let stricter = Enablement { all: s.all | more, ..s.clone() };
            if stricter.admits(&e) {
                prop_assert!(s.admits(&e));
            }
        }

        #[test]
        fn raises_covers_what_any_session_admits(
            sessions in proptest::collection::vec(enablement(), 1..5), e in event(),
        ) {
            // A provider cannot know of filters and properties, so it may raise more than is taken.
            let union = CombinedEnablement::of(&sessions);
            if sessions.iter().any(|s| s.admits(&e)) {
                prop_assert!(union.raises(e.level, e.keyword), "{:?}", union);
            }
        }
    }

    #[test]
    fn admits_compares_all_64_bits_of_a_mask() {
        let monitoring = EventKey {
            id: 1,
            level: 4,
            keyword: 0x2_0000_0000,
        };
        assert!(!Enablement::new(5, 0xffff_ffff).admits(&monitoring));
        assert!(Enablement::new(5, 0).admits(&monitoring));
        assert!(Enablement::new(5, u64::MAX).admits(&monitoring));
    }

    #[test]
    fn raises_is_false_without_sessions() {
        assert!(!CombinedEnablement::of(&[]).raises(0, 0));
    }
}
