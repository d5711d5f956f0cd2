//! Property-tests a filter against the enable rule: `cargo run --example test_a_filter --features
//! proptest`.
//!
//! The filter is a table that is made once for a session, so that an event is looked up with one
//! comparison. The example tests on thousands of sessions and events of the CLR's runtime provider
//! that the filter agrees with the rule. It then shows that the test finds a filter with a fault.

use std::collections::HashSet;

use etl_control::enable::{Enablement, EventKey};
use etl_control::strategies::{Case, cases_of};
use etl_schema::tables::{Provider, Registry};
use etl_schema::testing::strategies::events_of;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The filter under test: the keys of the events that a session admits.
struct Admitted(HashSet<EventKey>);

impl Admitted {
    fn new(session: &Enablement, provider: &Provider, zero_is_all: bool) -> Self {
        let keys = provider.events.iter().map(|event| EventKey {
            id: match event.schema.identity {
                etl_schema::Identity::Modern { id, .. } => id,
                _ => 0,
            },
            level: event.schema.level.value,
            keyword: event.schema.keywords,
        });
        let has_fault = !zero_is_all && session.any == 0;
        let admitted = keys.filter(|key| {
            let is_lost = has_fault && key.keyword != 0;
            session.admits(key) && !is_lost
        });
        Admitted(admitted.collect())
    }

    fn admits(&self, event: &EventKey) -> bool {
        self.0.contains(event)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Registry::builtin()
        .find("runtime")
        .ok_or("the runtime provider is described")?;
    let cases = cases_of(runtime);
    runner().run(&cases, |case| agrees(&case, runtime, true))?;
    println!("the filter agrees with the rule");

    match runner().run(&cases, |case| agrees(&case, runtime, false)) {
        Ok(()) => return Err("the fault was not found".into()),
        Err(found) => println!("the test finds a filter that reads mask 0 as none:\n{found}"),
    }

    // Whole events have payloads.
    runner().run(&events_of(runtime), |event| {
        prop_assert!(
            event.payload.len() < 64 << 10,
            "{} is too large",
            event.event.schema.name
        );
        Ok(())
    })?;
    println!("every event fits into a record");
    Ok(())
}

/// A runner counts its cases, so every test has its own.
fn runner() -> TestRunner {
    TestRunner::new(Config {
        failure_persistence: None,
        ..Config::default()
    })
}

fn agrees(case: &Case, provider: &Provider, zero_is_all: bool) -> Result<(), TestCaseError> {
    let filter = Admitted::new(&case.session, provider, zero_is_all);
    prop_assert_eq!(filter.admits(&case.event), case.is_admitted());
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
