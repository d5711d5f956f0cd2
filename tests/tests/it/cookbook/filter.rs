use etl_control::enable::{Enablement, EventKey, IdFilter};
use etl_control::strategies::{enablements_of, event_keys_of};
use etl_schema::tables::{Provider, Registry};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The filter under test.
fn admits(session: &Enablement, event: &EventKey) -> bool {
    let level = event.level == 0 || session.level == 0 || event.level <= session.level;
    let keyword = match event.keyword {
        0 => !session.ignore_keyword_0,
        some => (session.any == 0 || some & session.any != 0) && some & session.all == session.all,
    };
    let id = match &session.ids {
        IdFilter::Any => true,
        IdFilter::In(ids) => ids.contains(&event.id),
        IdFilter::Out(ids) => !ids.contains(&event.id),
    };
    level && keyword && id
}

fn runtime() -> &'static Provider {
    Registry::builtin().find("Microsoft-Windows-DotNETRuntime").unwrap()
}

proptest! {
    /// Sessions with the keywords, levels and ids of the provider, and its events and similar ones.
    #[test]
    fn filter_decides_as_the_rule(
        session in enablements_of(runtime()),
        event in event_keys_of(runtime()),
    ) {
        prop_assert_eq!(admits(&session, &event), session.admits(&event));
    }
}

/// The test finds a wrong filter: one for which the mask 0 admits nothing.
#[test]
fn wrong_filter_is_found() {
    let wrong = |session: &Enablement, event: &EventKey| {
        admits(session, event) && (session.any != 0 || event.keyword == 0)
    };
    let both = (enablements_of(runtime()), event_keys_of(runtime()));
    let found = TestRunner::deterministic().run(&both, |(session, event)| {
        prop_assert_eq!(wrong(&session, &event), session.admits(&event));
        Ok(())
    });
    assert!(found.is_err());
}
