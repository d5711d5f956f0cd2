//! Builds a scenario in Rust and keeps its trace and truth in memory, as a unit test of a decoder
//! does.
//!
//! `cargo run -p etl-synth --example in_memory`

use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::model::{Action, AppDomainPlan, AssemblyPlan, ClrPlan, CodeKind, EnablePlan};
use etl_synth::model::{MethodPlan, ModuleKind, ModulePlan, ProcessPlan, Request, Scenario};
use etl_synth::model::{SessionPlan, Sku, Work};
use etl_synth::truth::InMemoryTruth;
use etl_synth::{SECOND, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A process with a module of twenty methods; fifteen have code before the trace starts.
    let mut methods = MethodPlan::many(20, CodeKind::Jitted);
    methods.ready = 15;
    let module = ModulePlan::new("C:\\App\\App.dll", ModuleKind::Il).with_methods(methods);
    let assembly = AssemblyPlan::new("App").with_module(module);
    let clr = ClrPlan::new(Sku::Core, [6, 0, 100, 0])
        .with_domain(AppDomainPlan::new("clrhost").with_assembly(assembly));
    let mut scenario = Scenario::new("in-memory");
    let app = scenario.process(ProcessPlan::new("App.exe").with_clr(clr));

    // Start a session, compile five methods, enable the rundown, stop.
    let session = SessionPlan::new("clr", "clr.etl").with(CLR_RUNTIME, 0x18, 5);
    scenario.at(SECOND, Action::Start(Box::new(session)));
    scenario.at(2 * SECOND, Action::Work { process: app, work: Work::Jit(5) });
    let rundown = EnablePlan::new(CLR_RUNDOWN, 0x138, 5);
    scenario.at(3 * SECOND, Action::Session("clr".into(), Request::Enable(rundown)));
    scenario.at(4 * SECOND, Action::Session("clr".into(), Request::Stop));

    let mut truth = InMemoryTruth::default();
    for (name, bytes) in Simulation::new(&scenario).observer(&mut truth).run_in_memory()? {
        println!("{name}: {} bytes", bytes.len());
    }
    for event in truth.recorded(0) {
        println!("{:>12} ns  {}", event.at, event.name);
    }
    assert_eq!(truth.recorded(0).filter(|e| e.name.starts_with("MethodLoadVerbose")).count(), 5);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
