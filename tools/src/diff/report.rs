//! The results of a comparison: differences, changes, counts.

use etl_format::read::Damage;
use serde::Serialize;

use super::change::Change;
use super::event::Event;
use super::identity::{EventIdentity, ProviderIdentity};

/// One difference between the events of two traces.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Difference<'a> {
    /// Only in the first trace.
    Missing(&'a Event),
    /// Only in the second trace.
    Extra(&'a Event),
    /// In both, with differences.
    Changed {
        /// The event in the first trace.
        before: &'a Event,
        /// The event in the second trace.
        after: &'a Event,
        /// Its differences; not empty.
        changes: &'a [Change],
    },
}

/// How often an event, or any event of a provider, occurs in each trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CountDifference {
    /// The provider.
    #[serde(flatten)]
    pub provider: ProviderIdentity,
    /// The event; `None` in counts of providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventIdentity>,
    /// Its number in the first trace.
    pub before: u64,
    /// Its number in the second trace.
    pub after: u64,
}

/// The result of a comparison. `docs/diff.md` describes its JSON.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Events that are the same.
    pub same: u64,
    /// Events that are in both and differ.
    pub changed: u64,
    /// Events only in the first trace.
    pub missing: u64,
    /// Events only in the second trace.
    pub extra: u64,
    /// Header fields that differ.
    pub header: Vec<Change>,
    /// Providers whose number of events differs, in the order of their GUIDs.
    pub providers: Vec<CountDifference>,
    /// Events whose number differs, in the order of their identities.
    pub counts: Vec<CountDifference>,
    /// Parts of the first and the second trace that could not be read.
    #[serde(skip)]
    pub damage: [Vec<Damage>; 2],
}

impl Summary {
    /// Whether there is any difference.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.changed != 0 || self.missing != 0 || self.extra != 0 || !self.header.is_empty()
    }
}
