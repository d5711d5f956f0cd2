//! Classic providers (MOF, WPP): they receive flags and a level, and decide themselves.
//!
//! ETW does not filter their events. Only one session receives them: the last session that enabled
//! the provider. Zero does not mean "all" here: with flags of 0 no event that has a flag is traced.
//! Providers with a single class of events ignore the flags.
//!
//! Source: the reference of `EnableTrace` and `EnableTraceEx2`, and of WPP's conditions.

use super::Enablement;

/// The level and the flags that a classic provider receives.
///
/// ```
/// use etl_control::enable::{ClassicEnablement, Enablement};
///
/// let classic = ClassicEnablement::from(&Enablement::new(4, 0x2_0000_0001));
/// assert_eq!(classic.flags, 1, "the low half of the mask");
/// assert!(classic.traces(4, 0x1) && !classic.traces(5, 0x1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassicEnablement {
    /// Level of the session.
    pub level: u8,
    /// Flags: the low half of the mask.
    pub flags: u32,
}

impl From<&Enablement> for ClassicEnablement {
    /// The part of an enablement that a classic provider receives: the level and the low 32 bits of
    /// `any`.
    fn from(enablement: &Enablement) -> Self {
        let [a, b, c, d, ..] = enablement.any.to_le_bytes();
        ClassicEnablement {
            level: enablement.level,
            flags: u32::from_le_bytes([a, b, c, d]),
        }
    }
}

impl ClassicEnablement {
    /// Whether a WPP message of this flag and level is traced, by the condition on both
    /// (`WPP_LEVEL_FLAGS_ENABLED`): its flag is on, and its level is not above the session's level.
    #[must_use]
    pub const fn traces(&self, level: u8, flag: u32) -> bool {
        self.flags & flag != 0 && level <= self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_enablement_has_the_low_half_of_a_mask() {
        let low = ClassicEnablement::from(&Enablement::new(4, 0x2_0000_0001));
        assert_eq!(low, ClassicEnablement { level: 4, flags: 1 });
        assert!(low.traces(4, 1) && !low.traces(5, 1) && !low.traces(4, 2));
        let all = ClassicEnablement::from(&Enablement::new(0, 0));
        assert!(!all.traces(0, u32::MAX), "0 is not all");
    }
}
