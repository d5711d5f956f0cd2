//! Events that the CLR does not raise for the known enablements of its providers.
//!
//! Level and keywords of an event do not decide this alone: whether a rundown is requested at all,
//! or whether unloads are logged, depends on keywords that the events do not have.

use etl_control::clr::{Code, Form, INFORMATIONAL, Method, Rundown, Runtime, Unload, VERBOSE};
use etl_control::enable::{CombinedEnablement, Enablement, EventKey};
use etl_schema::clr::Enumeration;
use etl_schema::clr::keyword::{
    COMPILATION, END_ENUMERATION, END_RUNDOWN, IL_MAP, JIT, LOADER, NGEN, OVERRIDE_NGEN,
    PERF_TRACK, STACK, START_ENUMERATION, START_RUNDOWN, THREADING,
};
use etl_schema::views::clr::Change;

use etl_analysis::machine::{Counted, MethodSign, SignCount};
use etl_schema::views::clr::ClrProvider;

use super::enablement::MANIFEST;
use super::merge;
use super::missing_stacks::Kind;

/// Whether an event belongs to a rundown under the runtime provider, which only the first release
/// of .NET Framework 4 logs.
fn is_of_first_release(id: u16) -> bool {
    matches!(id, 135..=140 | 149 | 150)
}

/// The keywords that a session enabled. A mask of 0 enables all.
fn mask(enablement: &Enablement) -> u64 {
    if enablement.any == 0 {
        u64::MAX
    } else {
        enablement.any
    }
}

/// The events that the enablements of one of the two providers can make the CLR raise, at any time.
#[derive(Clone, Copy, Debug)]
pub struct Raised {
    provider: ClrProvider,
    runtime: Runtime,
    /// Loads of all that exists, which a request for the state of the CLR adds (capture state).
    captured: Option<Runtime>,
    rundown: Rundown,
    /// Whether every session that enabled the provider was verbose.
    is_verbose: bool,
}

impl Raised {
    /// The events of a provider by these enablements; `None` without any.
    pub fn of<'a>(
        provider: ClrProvider,
        enablements: impl Iterator<Item = &'a Enablement> + Clone,
    ) -> Option<Self> {
        // OverrideAndSuppressNGenEvents turns NGen off as long as its session runs. Sessions that
        // do not set it may have run alone.
        let always = enablements
            .clone()
            .fold(u64::MAX, |always, e| always & mask(e));
        let off = OVERRIDE_NGEN & !always;
        let sessions: Vec<Enablement> = enablements
            .map(|e| Enablement {
                any: mask(e) & !off,
                all: 0,
                ..e.clone()
            })
            .collect();
        let combined = CombinedEnablement::of(&sessions);
        if !combined.enabled {
            return None;
        }
        Some(Raised {
            provider,
            runtime: combined.into(),
            captured: None,
            rundown: combined.into(),
            is_verbose: sessions.iter().all(|e| e.admits_level(VERBOSE)),
        })
    }

    /// The same if a session may also have requested the state of the CLR.
    pub fn with_capture<'a>(
        self,
        enablements: impl Iterator<Item = &'a Enablement> + Clone,
    ) -> Self {
        let all: Vec<Enablement> = enablements
            .map(|e| Enablement {
                any: mask(e) | START_ENUMERATION,
                ..e.clone()
            })
            .collect();
        let captured = Raised::of(self.provider, all.iter());
        Raised {
            captured: captured.map(|raised| raised.runtime),
            ..self
        }
    }

    /// Whether the CLR raises events of this kind.
    fn raises(self, event: EventKey) -> bool {
        if event.id == MANIFEST {
            return true;
        }
        match self.provider {
            ClrProvider::Rundown => self.rundown.raises_event(event),
            ClrProvider::Runtime => {
                is_of_first_release(event.id) || self.runtime.raises_event(event)
            }
        }
    }

    /// Whether the CLR of a process raises method events with this sign.
    fn raises_sign(self, ProcessSign { count, is_captured }: ProcessSign) -> bool {
        let sign = count.sign;
        let method = Method::from_flags(sign.flags);
        let forms = match sign.change {
            Change::Load => {
                let captured = match self.captured {
                    Some(captured) if is_captured => captured.method_load(method),
                    _ => None,
                };
                [self.runtime.method_load(method), captured]
            }
            Change::Unload => [Unload::Destroyed, Unload::OwnerGone]
                .map(|why| self.runtime.method_unload(method, why)),
            Change::Rundown(which) => [self.rundown.method(which, method), None],
        };
        let form = if sign.named {
            Form::Verbose
        } else {
            Form::Plain
        };
        // The form depends on the level at that time, which may have been lower than the highest.
        let was_lower = !sign.named && !self.is_verbose && !method.is_always_named();
        forms
            .into_iter()
            .flatten()
            .any(|raised| raised == form || was_lower)
    }

    /// The given events and method events of the provider that the CLR does not raise.
    pub fn contradictions(
        self,
        events: impl Iterator<Item = (EventKey, Counted)>,
        signs: impl Iterator<Item = ProcessSign>,
    ) -> Vec<Contradiction> {
        let mut ids = Vec::new();
        let mut out = Vec::new();
        let is_rundown = self.provider.is_rundown();
        let signs: Vec<_> = signs
            .filter(|sign| matches!(sign.count.sign.change, Change::Rundown(_)) == is_rundown)
            .collect();
        for (event, counted) in events {
            if self.raises(event) || self.raises_all_signs(&signs, event.id) {
                continue;
            }
            ids.push(event.id);
            let kind = Kind {
                provider: self.provider,
                id: event.id,
            };
            add(
                &mut out,
                Contradiction {
                    what: format!("{} (id {})", kind.name(), event.id),
                    raised: RaisedThing::Event(event),
                    counted,
                },
            );
        }
        for sign in signs {
            let SignCount { sign: of, counted } = sign.count;
            if ids.contains(&event_id(of)) || self.raises_sign(sign) {
                continue;
            }
            add(
                &mut out,
                Contradiction {
                    what: words(of),
                    raised: RaisedThing::Method(of),
                    counted,
                },
            );
        }
        out
    }

    /// Whether an event has method signs and the CLR raises all of them. Signs contain more than
    /// the event's key: they show whether their session may have had a lower level.
    fn raises_all_signs(self, signs: &[ProcessSign], id: u16) -> bool {
        let mut signs = signs
            .iter()
            .filter(|sign| event_id(sign.count.sign) == id)
            .peekable();
        signs.peek().is_some() && signs.all(|&sign| self.raises_sign(sign))
    }

    /// Whether the CLR raises what contradicted other enablements.
    fn raises_thing(self, thing: RaisedThing) -> bool {
        match thing {
            RaisedThing::Event(event) => self.raises(event),
            RaisedThing::Method(sign) => self.raises_sign(ProcessSign {
                count: SignCount {
                    sign,
                    counted: Counted::default(),
                },
                is_captured: false,
            }),
        }
    }
}

/// The method events of a process with one sign.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSign {
    /// The events.
    pub count: SignCount,
    /// Whether a session requested the state of a CLR of the process (capture state).
    pub is_captured: bool,
}

/// Events that the CLR raises under the same conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaisedThing {
    /// Events of a kind.
    Event(EventKey),
    /// Method events with a sign.
    Method(MethodSign),
}

/// Events that the CLR does not raise.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The events, in words.
    pub what: String,
    /// The first of them.
    pub raised: RaisedThing,
    /// The number of events, and the time of the first.
    pub counted: Counted,
}

/// The smallest change of masks and levels with which the CLR raises an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Keywords that are missing.
    pub keywords: u64,
    /// Keywords that prevent it.
    pub without: u64,
    /// The level of the session, if it has to be another one.
    pub level: Option<u8>,
}

impl Correction {
    const NONE: Correction = Correction {
        keywords: 0,
        without: 0,
        level: None,
    };

    /// The change of the enablements of a provider; `None` if no small one is enough.
    pub fn of<'a>(
        provider: ClrProvider,
        enablements: impl Iterator<Item = &'a Enablement> + Clone,
        thing: RaisedThing,
    ) -> Option<Self> {
        Correction::all(provider).into_iter().find(|correction| {
            let corrected: Vec<Enablement> =
                enablements.clone().map(|e| correction.apply(e)).collect();
            Raised::of(provider, corrected.iter()).is_some_and(|raised| raised.raises_thing(thing))
        })
    }

    fn apply(self, enablement: &Enablement) -> Enablement {
        Enablement {
            any: (mask(enablement) | self.keywords) & !self.without,
            level: self.level.unwrap_or(enablement.level),
            ..enablement.clone()
        }
    }

    /// The changes that are tried, the smallest first.
    fn all(provider: ClrProvider) -> Vec<Correction> {
        let enumerations = match provider {
            ClrProvider::Runtime => [START_ENUMERATION, END_ENUMERATION],
            ClrProvider::Rundown => [START_RUNDOWN, END_RUNDOWN],
        };
        let others = [
            LOADER,
            JIT,
            NGEN,
            IL_MAP,
            STACK,
            THREADING,
            PERF_TRACK,
            COMPILATION,
        ];
        let bits: Vec<u64> = enumerations.into_iter().chain(others).collect();
        let mut additions = bits.clone();
        for (index, first) in bits.iter().enumerate() {
            additions.extend(bits.iter().skip(index + 1).map(|second| first | second));
        }
        let of_level = |level| Correction {
            level: Some(level),
            ..Correction::NONE
        };
        let mut all = vec![of_level(VERBOSE), of_level(INFORMATIONAL)];
        all.push(Correction {
            without: OVERRIDE_NGEN,
            ..Correction::NONE
        });
        for level in [None, Some(VERBOSE)] {
            all.extend(additions.iter().map(|&keywords| Correction {
                keywords,
                level,
                ..Correction::NONE
            }));
        }
        all
    }
}

/// Adds to the count of the same words.
fn add(out: &mut Vec<Contradiction>, contradiction: Contradiction) {
    match out
        .iter_mut()
        .find(|other| other.what == contradiction.what)
    {
        Some(same) => merge(&mut same.counted, contradiction.counted),
        None => out.push(contradiction),
    }
}

/// The id of the method events with a sign, from MethodLoad to MethodUnloadVerbose; the ids of the
/// rundown provider are equal.
fn event_id(sign: MethodSign) -> u16 {
    let ends = matches!(
        sign.change,
        Change::Unload | Change::Rundown(Enumeration::End)
    );
    METHOD_LOAD + 2 * u16::from(sign.named) + u16::from(ends)
}

/// The event of a load without names.
const METHOD_LOAD: u16 = 141;

fn words(sign: MethodSign) -> String {
    let what = match sign.change {
        Change::Load => "loads",
        Change::Unload => "unloads",
        Change::Rundown(Enumeration::Start) => "the start rundown",
        Change::Rundown(Enumeration::End) => "the end rundown",
    };
    let method = Method::from_flags(sign.flags);
    let names = if sign.named { "with" } else { "without" };
    let code = match (method.code, method.generic) {
        (Code::Dynamic, _) => "dynamic methods",
        (Code::Helper, _) => "helpers of the runtime",
        (Code::Jitted, false) => "methods compiled at run time",
        (Code::Jitted, true) => "generic methods compiled at run time",
        (Code::Precompiled, false) => "precompiled methods",
        (Code::Precompiled, true) => "precompiled generic methods",
    };
    format!("{what} of {code}, {names} their names")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClrProvider::{Rundown, Runtime};
    use etl_format::Ticks;

    const END: Change = Change::Rundown(Enumeration::End);
    const START: Change = Change::Rundown(Enumeration::Start);
    const JITTED: u32 = 8;
    const PRECOMPILED: u32 = 0;
    const DYNAMIC: u32 = 9;
    const GENERIC: u32 = 8 | 2;

    fn raised(provider: ClrProvider, masks: &[(u8, u64)]) -> Raised {
        let sessions: Vec<_> = masks
            .iter()
            .map(|&(l, any)| Enablement::new(l, any))
            .collect();
        Raised::of(provider, sessions.iter()).unwrap()
    }

    fn sign(change: Change, flags: u32, named: bool) -> MethodSign {
        MethodSign::new(change, flags, named)
    }

    /// The markers, modules and methods of a whole end rundown.
    fn end_rundown() -> Vec<(EventKey, Counted)> {
        let kinds = [
            (144, 0x30),
            (146, 0x20038),
            (148, 0x20038),
            (152, 8),
            (154, 8),
            (158, 8),
        ];
        let key = |(id, keyword)| EventKey {
            id,
            level: 4,
            keyword,
        };
        kinds
            .map(|kind| {
                (
                    key(kind),
                    Counted {
                        count: 1,
                        first: Some(Ticks::new(7)),
                    },
                )
            })
            .to_vec()
    }

    #[test]
    fn masks_of_the_documents_contradict_a_whole_end_rundown() {
        let methods = [sign(END, PRECOMPILED, true), sign(END, JITTED, true)];
        let methods = || {
            methods.iter().map(|&sign| ProcessSign {
                count: SignCount {
                    sign,
                    counted: Counted {
                        count: 1,
                        first: Some(Ticks::new(8)),
                    },
                },
                is_captured: false,
            })
        };
        for mask in [0x138, 0x178, 0x20138, 0] {
            let found = raised(Rundown, &[(5, mask)]);
            let found = found.contradictions(end_rundown().into_iter(), methods());
            // All keywords include the one that turns NGen off.
            assert_eq!(found.is_empty(), mask != 0, "{mask:#x} {found:?}");
        }
        // No rundown, no rundown, only the start rundown.
        for mask in [0xB8, 0x38, 0x78] {
            let found = raised(Rundown, &[(5, mask)]);
            let found = found.contradictions(end_rundown().into_iter(), methods());
            assert_eq!(found.len(), end_rundown().len(), "{mask:#x} {found:?}");
        }
        let found = raised(Rundown, &[(5, 0x118)]);
        let found = found.contradictions(end_rundown().into_iter(), methods());
        let [Contradiction { what, counted, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            what,
            "the end rundown of precompiled methods, with their names"
        );
        assert_eq!((counted.count, counted.first), (1, Some(Ticks::new(8))));
    }

    #[test]
    fn raises_sign_follows_the_tables_of_the_documents() {
        use Change::{Load, Unload};
        let cases = [
            // Unloads of compiled methods need EndEnumeration, unloads of dynamic methods do not.
            (Runtime, (5, 0x10), sign(Unload, JITTED, true), false),
            (Runtime, (5, 0x90), sign(Unload, JITTED, true), true),
            (Runtime, (5, 0x10), sign(Unload, DYNAMIC, true), true),
            (Runtime, (5, 0x20), sign(Load, PRECOMPILED, true), false),
            (Runtime, (5, 0x60), sign(Load, PRECOMPILED, true), true),
            (Runtime, (5, 0x60), sign(Unload, PRECOMPILED, true), false),
            (Runtime, (5, 0xa0), sign(Unload, PRECOMPILED, true), true),
            (Runtime, (5, 0x4_0060), sign(Load, PRECOMPILED, true), false),
            // At level 4 only generic and dynamic methods have names.
            (Runtime, (4, 0x10), sign(Load, JITTED, true), false),
            (Runtime, (4, 0x10), sign(Load, JITTED, false), true),
            (Runtime, (4, 0x10), sign(Load, GENERIC, true), true),
            (Runtime, (4, 0x10), sign(Load, GENERIC, false), false),
            (Runtime, (5, 0x10), sign(Load, JITTED, false), false),
            (Runtime, (3, 0x10), sign(Load, JITTED, false), false),
            (Rundown, (5, 0x50), sign(START, JITTED, true), true),
            (Rundown, (5, 0x50), sign(END, JITTED, true), false),
            (Rundown, (5, 0x110), sign(START, JITTED, true), false),
            (Rundown, (4, 0x110), sign(END, JITTED, true), false),
            (Rundown, (4, 0x110), sign(END, JITTED, false), true),
        ];
        for (provider, session, sign, expected) in cases {
            let found = raised(provider, &[session]);
            assert_eq!(
                found.raises_thing(RaisedThing::Method(sign)),
                expected,
                "{session:?} {sign:?}"
            );
        }
    }

    #[test]
    fn correction_is_the_smallest_change_of_a_mask() {
        let key = |id, keyword| {
            RaisedThing::Event(EventKey {
                id,
                level: 4,
                keyword,
            })
        };
        let of = |provider, (level, any), thing| {
            let session = Enablement::new(level, any);
            let found = Correction::of(provider, [session].iter(), thing);
            found.map(|found| (found.keywords, found.without, found.level))
        };
        let added = |keywords| Some((keywords, 0, None));
        assert_eq!(of(Rundown, (5, 0xB8), key(148, 0x2_0038)), added(0x100));
        assert_eq!(of(Rundown, (5, 0x138), key(147, 0x2_0038)), added(0x40));
        assert_eq!(of(Rundown, (5, 0x30), key(154, 8)), added(0x108));
        let method = |change, flags, named| RaisedThing::Method(sign(change, flags, named));
        let end = method(END, JITTED, true);
        assert_eq!(of(Rundown, (4, 0x138), end), Some((0, 0, Some(5))));
        assert_eq!(of(Rundown, (5, 0x128), end), added(0x10));
        let plain = method(END, JITTED, false);
        assert_eq!(of(Rundown, (5, 0x138), plain), Some((0, 0, Some(4))));
        let load = method(Change::Load, PRECOMPILED, true);
        assert_eq!(of(Runtime, (5, 0x30), load), added(0x40));
        assert_eq!(of(Runtime, (5, 0x4_0060), load), Some((0, 0x4_0000, None)));
        let unload = method(Change::Unload, JITTED, true);
        assert_eq!(of(Runtime, (5, 0x18), unload), added(0x80));
        assert_eq!(of(Runtime, (4, 0x8), unload), Some((0x90, 0, Some(5))));
    }

    #[test]
    fn of_combines_the_sessions() {
        let both = raised(Runtime, &[(4, 0x10), (5, 0x10)]);
        for named in [true, false] {
            let load = sign(Change::Load, JITTED, named);
            assert!(both.raises_thing(RaisedThing::Method(load)));
        }
        // While only the first is enabled, nothing turns NGen off.
        let both = raised(Runtime, &[(5, 0x60), (5, 0x4_0010)]);
        let load = sign(Change::Load, PRECOMPILED, true);
        assert!(both.raises_thing(RaisedThing::Method(load)));
        assert!(Raised::of(Rundown, [].iter()).is_none());
    }

    #[test]
    fn contradictions_leave_enumerations_of_the_first_release_alone() {
        let event = EventKey {
            id: 137,
            level: 4,
            keyword: 8,
        };
        let events = [(
            event,
            Counted {
                count: 1,
                first: None,
            },
        )];
        let found = raised(Runtime, &[(5, 8)]).contradictions(events.into_iter(), [].into_iter());
        assert!(found.is_empty(), "{found:?}");
    }
}
