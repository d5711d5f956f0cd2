//! Classic providers (MOF, WPP): they receive flags and a level, and decide themselves.
//!
//! ETW filters nothing for them. One session has such a provider: the last one that enabled it.
//! Zero does not mean "all" here: a provider that receives flags of 0 raises nothing.
//!
//! Source: the reference of `EnableTrace` and `EnableTraceEx2`, and of WPP's conditions.

use super::Enablement;

/// The level and the flags that a classic provider receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassicEnablement {
    /// Level, as the session gave it.
    pub level: u8,
    /// Flags: the low half of the mask.
    pub flags: u32,
}

impl From<&Enablement> for ClassicEnablement {
    /// What is left of an enablement for a classic provider: the level and the low 32 bits of
    /// `any`.
    fn from(enablement: &Enablement) -> Self {
        let [a, b, c, d, ..] = enablement.any.to_le_bytes();
        ClassicEnablement { level: enablement.level, flags: u32::from_le_bytes([a, b, c, d]) }
    }
}

impl ClassicEnablement {
    /// Whether a WPP message of this flag and level is traced, by the condition on both
    /// (`WPP_LEVEL_FLAGS_ENABLED`): its flag is on, and its level is not above that of the session.
    #[must_use]
    pub const fn traces(&self, level: u8, flag: u32) -> bool {
        self.traces_flag(flag) && level <= self.level
    }

    /// Whether a WPP message of this flag is traced, by WPP's own condition, which knows no level.
    #[must_use]
    pub const fn traces_flag(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// A classic provider: which session has it. `S` names sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassicProvider<S> {
    owner: Option<(S, ClassicEnablement)>,
}

impl<S: PartialEq> ClassicProvider<S> {
    /// A provider that is not enabled.
    #[must_use]
    pub const fn new() -> Self {
        ClassicProvider { owner: None }
    }

    /// A session enables it. Returns the session that had it before and receives no more events.
    pub fn enable(&mut self, session: S, enablement: ClassicEnablement) -> Option<S> {
        let before = self.owner.replace((session, enablement))?.0;
        let same = self.owner.as_ref().is_some_and(|(now, _)| *now == before);
        (!same).then_some(before)
    }

    /// A session disables it or ends. Has an effect for the owner only; no other session takes
    /// over.
    pub fn disable(&mut self, session: &S) {
        if self.owner.as_ref().is_some_and(|(owner, _)| owner == session) {
            self.owner = None;
        }
    }

    /// The session that receives its events, and how it enabled the provider.
    #[must_use]
    pub fn owner(&self) -> Option<(&S, ClassicEnablement)> {
        self.owner.as_ref().map(|(session, enablement)| (session, *enablement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classic_enablement_has_the_low_half_of_a_mask() {
        let low = ClassicEnablement::from(&Enablement::new(4, 0x2_0000_0001));
        assert_eq!(low, ClassicEnablement { level: 4, flags: 1 });
        assert!(low.traces(4, 1) && !low.traces(5, 1) && !low.traces(4, 2));
        let all = ClassicEnablement::from(&Enablement::new(0, 0));
        assert!(!all.traces(0, u32::MAX), "0 is not all");
    }

    proptest! {
        /// Enable and disable by a handful of sessions, against a naive reading of the calls.
        #[test]
        fn owner_is_the_last_session_that_enabled_the_provider(
            calls in proptest::collection::vec((0u8..4, proptest::option::of(0u32..3)), 0..20),
        ) {
            let mut provider = ClassicProvider::new();
            for (at, &(session, call)) in calls.iter().enumerate() {
                match call {
                    Some(flags) => {
                        provider.enable(session, ClassicEnablement { level: 1, flags });
                    }
                    None => provider.disable(&session),
                }
                let past = &calls[..=at];
                let last = past.iter().rposition(|(_, call)| call.is_some());
                let owner = last.and_then(|last| {
                    let (session, flags) = past[last];
                    let gone = past[last..].contains(&(session, None));
                    flags.filter(|_| !gone).map(|flags| (session, flags))
                });
                let has = provider.owner().map(|(session, enablement)| (*session, enablement.flags));
                prop_assert_eq!(has, owner);
            }
        }
    }
}
