//! Strategies for property tests: masks by keyword name, id filters, enablements, event keys.
//!
//! With the feature `proptest`.
//!
//! A [`Case`] is a session and an event. The rule admits about half of the events; each part of the
//! rule refuses some of the others. A failing case shrinks to few bits and to the first event that
//! fails, and prints its masks in hexadecimal with the names of their keywords. Whole events with
//! payloads are in `etl_schema::testing::strategies`.
//!
//! A filter of your own, compared with the rule:
//!
//! ```
//! use etl_control::enable::{Enablement, EventKey};
//! use etl_control::strategies::cases_of;
//! use etl_schema::tables::Registry;
//! use proptest::test_runner::TestRunner;
//!
//! // This filter ignores that events without keyword always pass.
//! fn mine(session: &Enablement, event: &EventKey) -> bool {
//!     event.level <= session.level && event.keyword & session.any != 0
//! }
//!
//! let runtime = Registry::builtin().find("runtime").unwrap();
//! let result = TestRunner::deterministic().run(&cases_of(runtime), |case| {
//!     proptest::prop_assert_eq!(mine(&case.session, &case.event), case.is_admitted());
//!     Ok(())
//! });
//! assert!(result.is_err(), "proptest finds an event for which they differ");
//! ```

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use etl_schema::Identity;
use etl_schema::tables::{Keyword, Provider, TableEvent};
use etl_schema::testing::strategies::{levels, masks};

use crate::enable::{Enablement, EventKey, IdFilter, Variant};

/// The number of ids in a filter: few, so that about half of the events pass.
const IDS: RangeInclusive<usize> = 0..=4;

/// A mask with the names of its keywords.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedMask {
    /// Names of the keywords.
    pub names: Vec<String>,
    /// Bits of the keywords.
    pub mask: u64,
}

impl fmt::Debug for NamedMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} ({})", self.mask, self.names.join(", "))
    }
}

/// A session and an event, for which a filter under test decides.
#[derive(Clone, PartialEq, Eq)]
pub struct Case {
    /// How the session enabled the provider.
    pub session: Enablement,
    /// The properties of the event on which the rule depends.
    pub event: EventKey,
    /// Keywords of the provider, to print masks.
    keywords: Arc<[Keyword]>,
}

impl Case {
    /// Whether the session gets the event, by the rule.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.session.admits(&self.event)
    }

    /// Formats a mask in hexadecimal with the names of its keywords.
    fn format_mask(&self, mask: u64) -> String {
        let mut names = Vec::new();
        for keyword in self.keywords.iter() {
            if keyword.mask & mask != 0 && mask != u64::MAX {
                names.push(keyword.name.as_str());
            }
        }
        if names.is_empty() {
            format!("{mask:#x}")
        } else {
            format!("{mask:#x} ({})", names.join(", "))
        }
    }
}

impl fmt::Debug for Case {
    /// Formats masks in hexadecimal with the names of their keywords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Enablement {
            level,
            any,
            all,
            ids,
            ..
        } = &self.session;
        write!(
            f,
            "session of level {level}, any {}, all {}",
            self.format_mask(*any),
            self.format_mask(*all)
        )?;
        match ids {
            IdFilter::Any => {}
            IdFilter::In(ids) => write!(f, ", only ids {ids:?}")?,
            IdFilter::Out(ids) => write!(f, ", without ids {ids:?}")?,
        }
        if self.session.ignore_keyword_0 {
            f.write_str(", without events of keyword 0")?;
        }
        let EventKey { id, level, keyword } = self.event;
        let decided = if self.is_admitted() {
            "admitted"
        } else {
            "refused"
        };
        write!(
            f,
            "; event {id} of level {level}, keyword {}: {decided}",
            self.format_mask(keyword)
        )
    }
}

/// Any sessions and events; about half of the events are admitted.
pub fn cases() -> impl Strategy<Value = Case> {
    cases_from(enablements().boxed(), event_keys().boxed(), Arc::default())
}

/// Sessions and events of a provider; about half of the events are admitted.
pub fn cases_of(provider: &Provider) -> impl Strategy<Value = Case> + use<> {
    let keywords = provider.keywords.iter().cloned().collect();
    cases_from(
        enablements_of(provider).boxed(),
        event_keys_of(provider).boxed(),
        keywords,
    )
}

fn cases_from(
    sessions: BoxedStrategy<Enablement>,
    events: BoxedStrategy<EventKey>,
    keywords: Arc<[Keyword]>,
) -> impl Strategy<Value = Case> {
    (sessions, events, any::<bool>(), 0usize..4, any::<bool>()).prop_map(
        move |(mut session, event, pass, part, is_near_miss)| {
            if pass || is_near_miss {
                admit(&mut session, &event);
            }
            if !pass {
                refuse(&mut session, &event, part);
            }
            // Only one part of the rule refuses a near miss, and for a narrow reason.
            if is_near_miss {
                make_all_partial(&mut session, &event);
                list_similar_id(&mut session, &event);
            }
            Case {
                session,
                event,
                keywords: Arc::clone(&keywords),
            }
        },
    )
}

/// The lowest bit of a mask.
const fn lowest(mask: u64) -> u64 {
    mask & mask.wrapping_neg()
}

/// Changes a session so that the event passes, as little as possible.
fn admit(session: &mut Enablement, event: &EventKey) {
    if !session.admits_level(event.level) {
        session.level = event.level;
    }
    if event.keyword == 0 {
        session.ignore_keyword_0 = false;
    } else {
        if session.any != 0 && session.any & event.keyword == 0 {
            session.any |= lowest(event.keyword);
        }
        session.all &= event.keyword;
    }
    match &mut session.ids {
        IdFilter::Any => {}
        IdFilter::In(ids) if ids.contains(&event.id) => {}
        IdFilter::In(ids) => ids.push(event.id),
        IdFilter::Out(ids) => ids.retain(|id| *id != event.id),
    }
}

/// Changes a session so that it does not get the event: by one part of the rule, or by the next
/// part that can refuse it.
fn refuse(session: &mut Enablement, event: &EventKey, first_part: usize) {
    let keyword = event.keyword;
    let other_keyword = lowest(!keyword);
    for part in first_part..first_part + 4 {
        if !session.admits(event) {
            return;
        }
        match part % 4 {
            0 if keyword == 0 => session.ignore_keyword_0 = true,
            0 if other_keyword != 0 => {
                session.any &= !keyword;
                // A mask of 0 means all keywords.
                if session.any == 0 {
                    session.any = other_keyword;
                }
            }
            1 if event.level > 1 => session.level = event.level - 1,
            2 if keyword != 0 => session.all |= other_keyword,
            3 => match &mut session.ids {
                ids @ IdFilter::Any => *ids = IdFilter::Out(vec![event.id]),
                IdFilter::In(ids) => ids.retain(|id| *id != event.id),
                IdFilter::Out(ids) => ids.push(event.id),
            },
            _ => {}
        }
    }
}

/// Adds a keyword of the event to an `all` mask that refuses it: a filter for which one of the bits
/// is enough differs from the rule only then.
fn make_all_partial(session: &mut Enablement, event: &EventKey) {
    if event.keyword != 0 && session.all & !event.keyword != 0 {
        session.all |= lowest(event.keyword);
    }
}

/// Adds an id with the low byte of the event's id to a list of ids.
fn list_similar_id(session: &mut Enablement, event: &EventKey) {
    let similar = event.id ^ 0x100;
    match &mut session.ids {
        IdFilter::In(ids) | IdFilter::Out(ids) if !ids.contains(&similar) => ids.push(similar),
        _ => {}
    }
}

/// Masks of up to three of a provider's keywords, by name; 0 if there are none.
pub fn named_masks(provider: &Provider) -> impl Strategy<Value = NamedMask> + use<> {
    let keywords = provider.keywords.clone();
    vec(any::<Index>(), 0..4).prop_map(move |indices| {
        let mut named_mask = NamedMask {
            names: Vec::new(),
            mask: 0,
        };
        for index in indices {
            if let Some(keyword) = nth(&keywords, index)
                && !named_mask.names.contains(&keyword.name)
            {
                named_mask.mask |= keyword.mask;
                named_mask.names.push(keyword.name.clone());
            }
        }
        named_mask
    })
}

/// The keyword with this index; `None` if there are no keywords.
fn nth(keywords: &[Keyword], index: Index) -> Option<&Keyword> {
    if keywords.is_empty() {
        None
    } else {
        keywords.get(index.index(keywords.len()))
    }
}

/// Filters by id, of any ids.
pub fn id_filters() -> impl Strategy<Value = IdFilter> {
    filters_of(prop_oneof![4 => 0u16..8, 1 => any::<u16>()].boxed())
}

fn filters_of(ids: BoxedStrategy<u16>) -> impl Strategy<Value = IdFilter> {
    prop_oneof![
        3 => Just(IdFilter::Any),
        1 => lists_of(ids.clone()).prop_map(IdFilter::In),
        1 => lists_of(ids).prop_map(IdFilter::Out),
    ]
}

/// Lists of ids, each once, in no order.
fn lists_of(ids: BoxedStrategy<u16>) -> impl Strategy<Value = Vec<u16>> {
    vec(ids, IDS).prop_map(|ids| {
        let mut list = Vec::new();
        for id in ids {
            if !list.contains(&id) {
                list.push(id);
            }
        }
        list
    })
}

/// The properties of any event on which the rule depends.
pub fn event_keys() -> impl Strategy<Value = EventKey> {
    let ids = prop_oneof![4 => 0u16..8, 1 => any::<u16>()];
    (ids, levels(), masks()).prop_map(|(id, level, keyword)| EventKey { id, level, keyword })
}

/// The properties of a provider's events on which the rule depends; all 0 if it has no events.
pub fn event_keys_of(provider: &Provider) -> impl Strategy<Value = EventKey> + use<> {
    let mut keys: Vec<EventKey> = provider.events.iter().map(key).collect();
    // A failing case shrinks towards the first key: few keywords, low level.
    keys.sort_by_key(|key| (key.keyword.count_ones(), key.keyword, key.level, key.id));
    keys.dedup();
    if keys.is_empty() {
        keys.push(EventKey::default());
    }
    // Few events have no keyword, and they have a rule of their own.
    let mut without_keyword = keys.clone();
    without_keyword.retain(|key| key.keyword == 0);
    if without_keyword.is_empty() {
        without_keyword.clone_from(&keys);
    }
    prop_oneof![7 => select(keys), 1 => select(without_keyword)]
}

fn key(event: &TableEvent) -> EventKey {
    let schema = &event.schema;
    EventKey {
        id: id(event),
        level: schema.level.value,
        keyword: schema.keywords,
    }
}

fn id(event: &TableEvent) -> u16 {
    match event.schema.identity {
        Identity::Modern { id, .. } => id,
        Identity::Classic { opcode, .. } => opcode.into(),
        Identity::Message { number } => number,
        Identity::SelfDescribing => 0,
    }
}

/// Any enablement by the current variant of the rule.
pub fn enablements() -> impl Strategy<Value = Enablement> {
    with(masks().boxed(), masks().boxed(), id_filters().boxed())
}

/// Enablements of a provider: masks of its keywords, filters by its ids.
pub fn enablements_of(provider: &Provider) -> impl Strategy<Value = Enablement> + use<> {
    let named = named_masks(provider).prop_map(|named| named.mask).boxed();
    let all = prop_oneof![3 => Just(0u64), 1 => named.clone()];
    let ids = event_keys_of(provider).prop_map(|key| key.id);
    with(named, all.boxed(), filters_of(ids.boxed()).boxed())
}

fn with(
    any: BoxedStrategy<u64>,
    all: BoxedStrategy<u64>,
    ids: BoxedStrategy<IdFilter>,
) -> impl Strategy<Value = Enablement> {
    let ignores = proptest::bool::weighted(0.2);
    (levels(), any, all, ignores, ids).prop_map(|(level, any, all, ignore_keyword_0, ids)| {
        Enablement {
            level,
            any,
            all,
            ignore_keyword_0,
            ids,
            variant: Variant::Current,
        }
    })
}

#[cfg(test)]
mod planted_faults;

#[cfg(test)]
mod tests {
    use super::*;
    use etl_schema::tables::Registry;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    fn runtime() -> &'static Provider {
        Registry::builtin().find("runtime").unwrap()
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
        fn named_masks_returns_the_bits_of_its_names(named in named_masks(runtime())) {
            let of = |name: &String| runtime().keyword(name).unwrap();
            prop_assert_eq!(named.names.iter().map(of).fold(0, |a, b| a | b), named.mask);
        }
    }

    /// How many of a thousand cases are admitted.
    fn admitted(cases: impl Strategy<Value = Case>) -> usize {
        let mut runner = TestRunner::deterministic();
        let draw = |_| cases.new_tree(&mut runner).unwrap().current().is_admitted();
        (0..1000).map(draw).filter(|admitted| *admitted).count()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn cases_are_admitted_and_refused_about_equally_often() {
        let rundown = Registry::builtin().find("rundown").unwrap();
        let counts = [
            cases_of(runtime()).boxed(),
            cases_of(rundown).boxed(),
            cases().boxed(),
        ];
        let counts = counts.map(admitted);
        assert!(
            counts.iter().all(|count| (450..=550).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn cases_refuse_by_each_part_of_the_rule_alone() {
        let mut runner = TestRunner::deterministic();
        let mut parts = [0; 3];
        for _ in 0..1000 {
            let Case { session, event, .. } =
                cases_of(runtime()).new_tree(&mut runner).unwrap().current();
            let refused = [
                !session.admits_level(event.level),
                !session.admits_keyword(event.keyword),
                !session.ids.admits(event.id),
            ];
            if refused.iter().filter(|refused| **refused).count() == 1 {
                parts
                    .iter_mut()
                    .zip(refused)
                    .for_each(|(n, refused)| *n += u32::from(refused));
            }
        }
        assert!(parts.iter().all(|n| *n > 25), "{parts:?}");
    }

    /// The smallest case for which a filter differs from the rule, in print.
    fn smallest(wrong: impl Fn(&Enablement, &EventKey) -> bool) -> (Case, String) {
        let mut runner = TestRunner::deterministic();
        let found = runner.run(&cases_of(runtime()), |case| {
            prop_assert_eq!(wrong(&case.session, &case.event), case.is_admitted());
            Ok(())
        });
        let Err(proptest::test_runner::TestError::Fail(_, case)) = found else {
            panic!("the fault is not found: {found:?}");
        };
        let text = format!("{case:?}");
        (case, text)
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn cases_shrink_to_few_bits_and_print_their_names() {
        // `all` is forgotten.
        let (case, text) = smallest(|session, event| {
            Enablement {
                all: 0,
                ..session.clone()
            }
            .admits(event)
        });
        let Case { session, event, .. } = &case;
        assert_eq!(
            (session.any, session.all.count_ones(), &session.ids),
            (0, 1, &IdFilter::Any)
        );
        assert_eq!(event.keyword.count_ones(), 1, "{text}");
        assert!(text.contains(&format!("all {:#x}", session.all)) && text.contains("Keyword)"));
        // 0 is taken for none.
        let (case, text) = smallest(|session, event| {
            session.admits(event) && (session.any != 0 || event.keyword == 0)
        });
        assert_eq!(
            (case.session.level, case.session.any, case.session.all),
            (0, 0, 0),
            "{text}"
        );
        assert!(text.ends_with("Keyword): admitted"), "{text}");
    }

    #[test]
    fn named_masks_accepts_a_provider_without_keywords() {
        let (name, guid) = (String::new(), etl_format::Guid::ZERO);
        let empty = Provider {
            name,
            guid,
            keywords: vec![],
            events: vec![],
        };
        let mut runner = TestRunner::deterministic();
        assert_eq!(
            named_masks(&empty)
                .new_tree(&mut runner)
                .unwrap()
                .current()
                .mask,
            0
        );
    }
}
