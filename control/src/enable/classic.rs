//! Classic providers (MOF, WPP): they are told flags and a level, and decide themselves.
//!
//! ETW filters nothing for them. One session has such a provider: the last one that enabled it. Zero
//! is no "all" here: a provider that is told flags of 0 has nothing to raise.
//!
//! Source: the reference of `EnableTrace` and `EnableTraceEx2`, and of WPP's conditions.

use super::Enablement;

/// What a classic provider is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassicEnablement {
    /// Level, as the session gave it.
    pub level: u8,
    /// Flags: the low half of the mask.
    pub flags: u32,
}

impl From<&Enablement> for ClassicEnablement {
    /// What is left of an enablement for a classic provider: the level and the low 32 bits of `any`.
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
    /// A provider that nobody enabled.
    #[must_use]
    pub const fn new() -> Self {
        ClassicProvider { owner: None }
    }

    /// A session enables it; whoever had it before gets nothing more. Returns that one.
    pub fn enable(&mut self, session: S, told: ClassicEnablement) -> Option<S> {
        let before = self.owner.replace((session, told))?.0;
        let same = self.owner.as_ref().is_some_and(|(now, _)| *now == before);
        (!same).then_some(before)
    }

    /// A session disables it or ends. Nobody else takes over: only the owner's word counts.
    pub fn disable(&mut self, session: &S) {
        if self.owner.as_ref().is_some_and(|(owner, _)| owner == session) {
            self.owner = None;
        }
    }

    /// The session that gets its events, and what the provider was told.
    #[must_use]
    pub fn owner(&self) -> Option<(&S, ClassicEnablement)> {
        self.owner.as_ref().map(|(session, told)| (session, *told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_upper_half_of_a_mask_is_lost() {
        let told = ClassicEnablement::from(&Enablement::new(4, 0x2_0000_0001));
        assert_eq!(told, ClassicEnablement { level: 4, flags: 1 });
        assert!(told.traces(4, 1) && !told.traces(5, 1) && !told.traces(4, 2));
        let all = ClassicEnablement::from(&Enablement::new(0, 0));
        assert!(!all.traces(0, u32::MAX), "0 is not all");
    }

    proptest! {
        /// Enable and disable by a handful of sessions, against a naive reading of the calls.
        #[test]
        fn the_last_session_that_enabled_it_has_it(
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
                let has = provider.owner().map(|(session, told)| (*session, told.flags));
                prop_assert_eq!(has, owner);
            }
        }
    }
}
