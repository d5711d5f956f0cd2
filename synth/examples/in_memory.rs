//! Builds a scenario in Rust and keeps its trace and truth in memory, as a unit test of a decoder
//! does.
//!
//! `cargo run -p etl-synth --example in_memory`

use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::model::{CodeKind, EnablePlan, MethodPlan, ProcessPlan, Request, Scenario};
use etl_synth::model::{SessionPlan, Work};
use etl_synth::truth::InMemoryTruth;
use etl_synth::{SECOND, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A process with a module of twenty methods; fifteen have code before the trace starts.
    let mut scenario = Scenario::new("in-memory");
    let methods = MethodPlan {
        ready: 15,
        ..MethodPlan::many(20, CodeKind::Jitted)
    };
    let app = scenario.process(ProcessPlan::managed("App.exe", methods));

    // Start a session, compile five methods, enable the rundown, stop.
    let rundown = EnablePlan::new(CLR_RUNDOWN, 0x138, 5);
    scenario
        .start(
            SECOND,
            SessionPlan::new("clr", "clr.etl").with(CLR_RUNTIME, 0x18, 5),
        )
        .work(2 * SECOND, app, Work::Jit(5))
        .request(3 * SECOND, "clr", Request::Enable(rundown))
        .stop(4 * SECOND, "clr");

    let mut truth = InMemoryTruth::default();
    for file in Simulation::new(&scenario)
        .observer(&mut truth)
        .run_in_memory()?
    {
        println!("{}: {} bytes", file.name, file.bytes.len());
    }
    let mut loads = 0;
    for event in truth.recorded(0) {
        println!("{:>12} ns  {}", event.at, event.name);
        if event.name.starts_with("MethodLoadVerbose") {
            loads += 1;
            assert!(event.number("MethodSize") > Some(0), "a method has code");
        }
    }
    assert_eq!(loads, 5);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
