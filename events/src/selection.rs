//! Which events are read: by their headers and by their content.

use etl_format::read::Record;
use etl_schema::store::SchemaStore;

use crate::conditions::Conditions;
use crate::event::{Event, Origin};
use crate::filter::Filter;

/// Selects events by a [`Filter`] on their headers and by [`Conditions`] on their names, fields and
/// text. The default selects all but stale records.
///
/// ```
/// use etl_events::Selection;
/// use etl_events::conditions::Conditions;
///
/// let conditions = Conditions::default().event("GC*").field("Depth >= 1")?;
/// let selection = Selection::default().conditions(conditions);
///
/// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
/// let mut events = trace.events();
/// let mut names = Vec::new();
/// while let Some(event) = events.next()? {
///     if selection.admits(&event) {
///         names.push(event.name().to_owned());
///     }
/// }
/// assert_eq!(names, ["GCStart_V1", "GCEnd_V1"]);
/// # Ok::<(), etl_events::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection {
    filter: Filter,
    conditions: Conditions,
    stale: StaleRecords,
}

/// What happens to stale records ([`Record::is_stale`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StaleRecords {
    #[default]
    LeaveOut,
    Include,
}

impl Selection {
    /// Selects by headers.
    #[must_use]
    pub fn filter(self, filter: Filter) -> Self {
        Selection { filter, ..self }
    }

    /// Selects by names, fields and text.
    #[must_use]
    pub fn conditions(self, conditions: Conditions) -> Self {
        Selection { conditions, ..self }
    }

    /// Includes stale records: copies of records that a merge left in the first buffer
    /// ([`Record::is_stale`]).
    #[must_use]
    pub fn with_stale_records(self) -> Self {
        Selection {
            stale: StaleRecords::Include,
            ..self
        }
    }

    /// The filter, to resolve the names of providers in it.
    pub fn filter_mut(&mut self) -> &mut Filter {
        &mut self.filter
    }

    /// Whether an event is selected.
    #[must_use]
    pub fn admits(&self, event: &Event<'_>) -> bool {
        let is_admitted = !self.is_left_out(&event.record)
            && self
                .filter
                .admits_with(&event.record, event.origin.context.as_ref(), |_| {
                    event.provider_name()
                });
        is_admitted && self.admits_content(event)
    }

    fn is_left_out(&self, record: &Record<'_>) -> bool {
        self.stale == StaleRecords::LeaveOut && record.is_stale()
    }

    /// Whether a record is selected by its header.
    #[inline]
    pub(crate) fn admits_record(
        &self,
        record: &Record<'_>,
        origin: &Origin<'_>,
        store: &SchemaStore,
    ) -> bool {
        if self.is_left_out(record) {
            return false;
        }
        if self.filter.admits_all() {
            return true;
        }
        let context = origin.context.as_ref();
        self.filter
            .admits_with(record, context, |provider| store.provider_name(provider))
    }

    /// Whether there are conditions on the content of events.
    #[inline]
    pub(crate) fn has_content(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether an event is selected by its content.
    #[inline]
    pub(crate) fn admits_content(&self, event: &Event<'_>) -> bool {
        self.conditions.is_empty() || self.conditions.admits(event)
    }
}
