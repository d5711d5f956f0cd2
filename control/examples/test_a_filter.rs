//! Property-tests a filter against the enable rule: `cargo run --example test_a_filter --features
//! proptest`.
//!
//! The filter is a table that is made once for a session, so that looking an event up costs one
//! comparison. Is it the rule? Each law is tried on thousands of sessions and events of the CLR's
//! runtime provider, and a filter with a fault is shown to be found out.

use std::collections::HashSet;

use etl_control::enable::{Enablement, EventKey};
use etl_control::strategies::{Case, cases_of};
use etl_schema::tables::{Provider, Registry};
use etl_schema::testing::strategies::events_of;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The filter under test: the (level, keyword, id) that a session admits, looked up.
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
        let fault = |key: &EventKey| !zero_is_all && session.any == 0 && key.keyword != 0;
        Admitted(
            keys.filter(|key| session.admits(key) && !fault(key))
                .collect(),
        )
    }

    fn admits(&self, event: &EventKey) -> bool {
        self.0.contains(event)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Registry::builtin()
        .find("runtime")
        .ok_or("the runtime provider is described")?;
    // A runner counts its cases, so each law has its own.
    let runner = || {
        TestRunner::new(Config {
            failure_persistence: None,
            ..Config::default()
        })
    };
    let cases = cases_of(runtime);
    let law = |zero_is_all| {
        move |case: Case| {
            let mine = Admitted::new(&case.session, runtime, zero_is_all);
            prop_assert_eq!(mine.admits(&case.event), case.is_admitted());
            Ok(())
        }
    };
    runner().run(&cases, law(true))?;
    println!("the filter is the rule");

    match runner().run(&cases, law(false)) {
        Ok(()) => return Err("the fault was not found".into()),
        Err(found) => println!("a filter that takes mask 0 for none is found out:\n{found}"),
    }

    // Whole events come with payloads.
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

#[test]
fn runs() {
    main().unwrap();
}
