use etl_control::enable::{Enablement, EventKey, IdFilter};
use etl_control::strategies::cases_of;
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
    Registry::builtin()
        .find("Microsoft-Windows-DotNETRuntime")
        .unwrap()
}

proptest! {
    /// Sessions with the keywords, levels and ids of the provider, and its events: the rule admits
    /// about half of them.
    #[test]
    fn filter_decides_as_the_rule(case in cases_of(runtime())) {
        prop_assert_eq!(admits(&case.session, &case.event), case.is_admitted());
    }
}

/// The test finds a wrong filter: one for which the mask 0 admits nothing.
#[test]
fn wrong_filter_is_found() {
    let wrong = |session: &Enablement, event: &EventKey| {
        admits(session, event) && (session.any != 0 || event.keyword == 0)
    };
    let found = TestRunner::deterministic().run(&cases_of(runtime()), |case| {
        prop_assert_eq!(wrong(&case.session, &case.event), case.is_admitted());
        Ok(())
    });
    assert!(found.is_err());
}
