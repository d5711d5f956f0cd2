//! Properties of an enablement: `EnableProperty` of `ENABLE_TRACE_PARAMETERS`.

use std::fmt;

/// Bits of `EnableProperty`. All but [`IGNORE_KEYWORD_0`](Self::IGNORE_KEYWORD_0) and
/// [`PROVIDER_GROUP`](Self::PROVIDER_GROUP) add extended items to each event.
///
/// Source: the reference of `ENABLE_TRACE_PARAMETERS` and the public header evntrace.h.
///
/// ```
/// use etl_control::enable::EnableProperties;
///
/// let properties = EnableProperties::STACK_TRACE.with(EnableProperties::SID);
/// assert_eq!(properties.to_string(), "sid,stack");
/// assert_eq!(EnableProperties::named("Stack"), Some(EnableProperties::STACK_TRACE));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnableProperties(pub u32);

/// Names as command lines write them after a provider, or as the header has them without prefix.
const NAMES: [(EnableProperties, &str); 10] = [
    (EnableProperties::SID, "sid"),
    (EnableProperties::TS_ID, "tsid"),
    (EnableProperties::STACK_TRACE, "stack"),
    (EnableProperties::PSM_KEY, "psmkey"),
    (EnableProperties::IGNORE_KEYWORD_0, "ignorekeyword0"),
    (EnableProperties::PROVIDER_GROUP, "providergroup"),
    (EnableProperties::ENABLE_KEYWORD_0, "enablekeyword0"),
    (EnableProperties::PROCESS_START_KEY, "processstartkey"),
    (EnableProperties::EVENT_KEY, "eventkey"),
    (EnableProperties::EXCLUDE_INPRIVATE, "excludeinprivate"),
];

impl EnableProperties {
    /// The user's SID with each event.
    pub const SID: Self = Self(0x1);
    /// The terminal session with each event.
    pub const TS_ID: Self = Self(0x2);
    /// A stack with each event.
    pub const STACK_TRACE: Self = Self(0x4);
    /// The process state manager's key with each event.
    pub const PSM_KEY: Self = Self(0x8);
    /// Events without keyword are left out.
    pub const IGNORE_KEYWORD_0: Self = Self(0x10);
    /// The GUID identifies a provider group.
    pub const PROVIDER_GROUP: Self = Self(0x20);
    /// Events without keyword pass.
    pub const ENABLE_KEYWORD_0: Self = Self(0x40);
    /// The process start key with each event.
    pub const PROCESS_START_KEY: Self = Self(0x80);
    /// A key that an event has in all sessions.
    pub const EVENT_KEY: Self = Self(0x100);
    /// Processes that browse in private are left out.
    pub const EXCLUDE_INPRIVATE: Self = Self(0x200);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` as well.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The property with a name (case does not matter).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        for (bits, known_name) in NAMES {
            if known_name.eq_ignore_ascii_case(name) {
                return Some(bits);
            }
        }
        None
    }

    /// Names of its bits.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (bits, name) in NAMES {
            if self.has(bits) {
                names.push(name);
            }
        }
        names
    }

    /// The bits that have no name.
    #[must_use]
    pub fn unnamed_bits(self) -> u32 {
        let mut rest = self.0;
        for (bits, _) in NAMES {
            if self.has(bits) {
                rest &= !bits.0;
            }
        }
        rest
    }
}

impl fmt::Display for EnableProperties {
    /// Names with commas between; bits without a name in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        let rest = self.unnamed_bits();
        f.write_str(&names.join(","))?;
        if rest != 0 {
            write!(f, "{}{rest:#x}", if names.is_empty() { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_named_agree() {
        let asked = EnableProperties::STACK_TRACE.with(EnableProperties::SID);
        assert_eq!(asked.to_string(), "sid,stack");
        assert_eq!(
            EnableProperties(0x8000_0004).to_string(),
            "stack,0x80000000"
        );
        assert_eq!(EnableProperties(0x400).to_string(), "0x400");
        for (bits, name) in NAMES {
            assert_eq!(EnableProperties::named(&name.to_uppercase()), Some(bits));
            assert_eq!(bits.0.count_ones(), 1);
        }
    }
}
