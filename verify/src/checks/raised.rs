//! Events that the CLR does not raise for what its providers are known to be enabled with.
//!
//! Level and keywords of an event are not enough to know: whether a rundown is requested at all, or
//! whether unloads are logged, depends on keywords that the events do not carry.

use etl_control::clr::{Form, Method, Rundown, Runtime, Unload};
use etl_control::enable::{CombinedEnablement, Enablement, EventKey};
use etl_schema::clr::Enumeration;
use etl_schema::clr::keyword::{OVERRIDE_NGEN, START_ENUMERATION};
use etl_schema::views::clr::Change;

use etl_analysis::machine::{Counted, MethodSign, SignCount};

use super::enablement::MANIFEST;
use super::missing_stacks::Kind;

/// The keywords that a session enabled: a mask of 0 is all of them.
fn mask(enablement: &Enablement) -> u64 {
    if enablement.any == 0 {
        u64::MAX
    } else {
        enablement.any
    }
}

/// All that the enablements of one of the two providers can make the CLR raise, at any time.
#[derive(Clone, Copy, Debug)]
pub struct Raised {
    runtime: Runtime,
    /// What a request for the state of the CLR (capture state) adds: loads of all that is there.
    captured: Option<Runtime>,
    rundown: Rundown,
    /// Whether every session that enabled it was verbose.
    is_verbose: bool,
    is_rundown: bool,
}

impl Raised {
    /// By these enablements; `None` without any.
    pub fn of<'a>(
        rundown: bool,
        enablements: impl Iterator<Item = &'a Enablement> + Clone,
    ) -> Option<Self> {
        // One keyword turns others off. It does so as long as its session is enabled.
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
        combined.enabled.then(|| Raised {
            runtime: combined.into(),
            captured: None,
            rundown: combined.into(),
            is_verbose: sessions
                .iter()
                .all(|e| e.admits_level(etl_control::clr::VERBOSE)),
            is_rundown: rundown,
        })
    }

    /// The same where a session may have requested the state of the CLR, too.
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
        let captured = Raised::of(self.is_rundown, all.iter());
        Raised {
            captured: captured.map(|with| with.runtime),
            ..self
        }
    }

    /// Whether the CLR raises events of this kind.
    fn raises(self, event: EventKey) -> bool {
        match (self.is_rundown, event.id) {
            (_, MANIFEST) => true,
            (true, _) => self.rundown.raises_event(event),
            // The first release enumerated under this provider.
            (false, 135..=140 | 149 | 150) => true,
            (false, _) => self.runtime.raises_event(event),
        }
    }

    /// Whether the CLR raises method events with this sign.
    fn raises_sign(self, sign: MethodSign) -> bool {
        let method = Method::from_flags(sign.flags);
        let forms = match sign.change {
            Change::Load => {
                let captured = self
                    .captured
                    .and_then(|captured| captured.method_load(method));
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
        // The form follows the level at that time, which may have been lower than the highest.
        let was_lower = !sign.named && !self.is_verbose && !method.is_always_named();
        forms
            .into_iter()
            .flatten()
            .any(|raised| raised == form || was_lower)
    }

    /// What the CLR does not raise of these events and method events of the provider, in words.
    pub fn contradictions(
        self,
        events: impl Iterator<Item = (EventKey, Counted)>,
        signs: impl Iterator<Item = SignCount>,
    ) -> Vec<(String, Counted)> {
        let mut ids = Vec::new();
        let mut out = Vec::new();
        let is_own =
            |sign: MethodSign| matches!(sign.change, Change::Rundown(_)) == self.is_rundown;
        let signs: Vec<_> = signs.filter(|count| is_own(count.sign)).collect();
        // Their signs say more of methods: whether their session may have had a lower level.
        let is_explained = |event: EventKey| {
            let mut own = signs
                .iter()
                .filter(|count| id(count.sign) == event.id)
                .peekable();
            own.peek().is_some() && own.all(|count| self.raises_sign(count.sign))
        };
        for (event, counted) in events.filter(|&(e, _)| !self.raises(e) && !is_explained(e)) {
            ids.push(event.id);
            let kind = Kind {
                rundown: self.is_rundown,
                id: event.id,
            };
            add(
                &mut out,
                format!("{} (id {})", kind.name(), event.id),
                counted,
            );
        }
        for SignCount { sign, counted, .. } in signs {
            if !ids.contains(&id(sign)) && !self.raises_sign(sign) {
                add(&mut out, words(sign), counted);
            }
        }
        out
    }
}

/// Adds to the count of the same words.
fn add(out: &mut Vec<(String, Counted)>, words: String, counted: Counted) {
    match out.iter_mut().find(|(known, _)| *known == words) {
        Some((_, sum)) => {
            sum.count += counted.count;
            sum.first = [sum.first, counted.first].into_iter().flatten().min();
        }
        None => out.push((words, counted)),
    }
}

/// The id of the method events with a sign: the same in both providers.
fn id(sign: MethodSign) -> u16 {
    let ends = matches!(
        sign.change,
        Change::Unload | Change::Rundown(Enumeration::End)
    );
    141 + 2 * u16::from(sign.named) + u16::from(ends)
}

fn words(sign: MethodSign) -> String {
    use etl_control::clr::Code;
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
    use etl_format::Ticks;

    const END: Change = Change::Rundown(Enumeration::End);
    const START: Change = Change::Rundown(Enumeration::Start);
    const JITTED: u32 = 8;
    const PRECOMPILED: u32 = 0;
    const DYNAMIC: u32 = 9;
    const GENERIC: u32 = 8 | 2;

    fn raised(rundown: bool, masks: &[(u8, u64)]) -> Raised {
        let sessions: Vec<_> = masks
            .iter()
            .map(|&(l, any)| Enablement::new(l, any))
            .collect();
        Raised::of(rundown, sessions.iter()).unwrap()
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
            methods.iter().map(|&sign| SignCount {
                sign,
                counted: Counted {
                    count: 1,
                    first: Some(Ticks::new(8)),
                },
            })
        };
        for mask in [0x138, 0x178, 0x20138, 0] {
            let found = raised(true, &[(5, mask)]);
            let found = found.contradictions(end_rundown().into_iter(), methods());
            // All keywords include the one that turns NGen off.
            assert_eq!(found.is_empty(), mask != 0, "{mask:#x} {found:?}");
        }
        // No rundown, no rundown, only the start rundown.
        for mask in [0xB8, 0x38, 0x78] {
            let found = raised(true, &[(5, mask)]);
            let found = found.contradictions(end_rundown().into_iter(), methods());
            assert_eq!(found.len(), end_rundown().len(), "{mask:#x} {found:?}");
        }
        let found = raised(true, &[(5, 0x118)]);
        let found = found.contradictions(end_rundown().into_iter(), methods());
        let [(words, counted)] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            words,
            "the end rundown of precompiled methods, with their names"
        );
        assert_eq!((counted.count, counted.first), (1, Some(Ticks::new(8))));
    }

    #[test]
    fn raises_sign_follows_the_tables_of_the_documents() {
        use Change::{Load, Unload};
        let cases = [
            // Unloads of compiled methods need EndEnumeration, those of dynamic ones do not.
            (false, (5, 0x10), sign(Unload, JITTED, true), false),
            (false, (5, 0x90), sign(Unload, JITTED, true), true),
            (false, (5, 0x10), sign(Unload, DYNAMIC, true), true),
            (false, (5, 0x20), sign(Load, PRECOMPILED, true), false),
            (false, (5, 0x60), sign(Load, PRECOMPILED, true), true),
            (false, (5, 0x60), sign(Unload, PRECOMPILED, true), false),
            (false, (5, 0xa0), sign(Unload, PRECOMPILED, true), true),
            (false, (5, 0x4_0060), sign(Load, PRECOMPILED, true), false),
            // Names at level 4 are those of generic and dynamic methods only.
            (false, (4, 0x10), sign(Load, JITTED, true), false),
            (false, (4, 0x10), sign(Load, JITTED, false), true),
            (false, (4, 0x10), sign(Load, GENERIC, true), true),
            (false, (4, 0x10), sign(Load, GENERIC, false), false),
            (false, (5, 0x10), sign(Load, JITTED, false), false),
            (false, (3, 0x10), sign(Load, JITTED, false), false),
            (true, (5, 0x50), sign(START, JITTED, true), true),
            (true, (5, 0x50), sign(END, JITTED, true), false),
            (true, (5, 0x110), sign(START, JITTED, true), false),
            (true, (4, 0x110), sign(END, JITTED, true), false),
            (true, (4, 0x110), sign(END, JITTED, false), true),
        ];
        for (rundown, session, sign, expected) in cases {
            let found = raised(rundown, &[session]);
            assert_eq!(found.raises_sign(sign), expected, "{session:?} {sign:?}");
        }
    }

    #[test]
    fn of_is_what_any_of_several_sessions_can_raise() {
        let both = raised(false, &[(4, 0x10), (5, 0x10)]);
        for named in [true, false] {
            assert!(both.raises_sign(sign(Change::Load, JITTED, named)));
        }
        // While only the first is enabled, nothing turns NGen off.
        let both = raised(false, &[(5, 0x60), (5, 0x4_0010)]);
        assert!(both.raises_sign(sign(Change::Load, PRECOMPILED, true)));
        assert!(Raised::of(true, [].iter()).is_none());
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
        let found = raised(false, &[(5, 8)]).contradictions(events.into_iter(), [].into_iter());
        assert!(found.is_empty(), "{found:?}");
    }
}
