//! Strategies for property tests: masks, enablements, event descriptors and whole events, at random
//! and of the tables. With the feature `proptest`.
//!
//! What they draw meets: masks have few bits out of those that matter, ids and levels are close to
//! each other, so that a filter under test lets some through and keeps some out.
//!
//! A filter of your own, held against the rule:
//!
//! ```
//! use etl_schema::enable::{Enablement, EventKey};
//! use etl_schema::strategies::{enablements_of, event_keys_of};
//! use etl_schema::tables::Registry;
//! use proptest::test_runner::TestRunner;
//!
//! // A filter that forgot that events without keyword always pass.
//! fn mine(session: &Enablement, event: &EventKey) -> bool {
//!     event.level <= session.level && event.keyword & session.any != 0
//! }
//!
//! let runtime = Registry::builtin().find("runtime").unwrap();
//! let both = (enablements_of(runtime), event_keys_of(runtime));
//! let found = TestRunner::deterministic().run(&both, |(session, event)| {
//!     proptest::prop_assert_eq!(mine(&session, &event), session.admits(&event));
//!     Ok(())
//! });
//! assert!(found.is_err(), "proptest finds an event that tells");
//! ```

mod enabled;
mod events;

pub use enabled::{
    NamedMask, enablements, enablements_of, event_keys, event_keys_of, id_filters, levels, masks,
    named_masks,
};
pub use events::{
    GeneratedEvent, descriptors, descriptors_of, events_of, payloads_of, pointer_sizes, schemas,
};
