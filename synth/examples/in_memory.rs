//! A scenario built in Rust, and its trace in memory: what a unit test of a decoder wants.
//!
//! `cargo run -p etl-synth --example in_memory`

use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::model::{Action, AppDomainPlan, AssemblyPlan, ClrPlan, CodeKind, MethodPlan};
use etl_synth::model::{ModuleKind, ModulePlan, ProcessPlan, Scenario, SessionPlan, Sku, Work};
use etl_synth::truth::Gathered;
use etl_synth::{Memory, SECOND};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A process with one module of twenty methods, of which fifteen have code before anybody looks.
    let methods = MethodPlan { ready: 15, ..MethodPlan::many(20, CodeKind::Jitted) };
    let module = ModulePlan::new("C:\\App\\App.dll", ModuleKind::Il).with_methods(methods);
    let assembly = AssemblyPlan::new("App").with_module(module);
    let clr = ClrPlan::new(Sku::Core, [6, 0, 100, 0])
        .with_domain(AppDomainPlan::new("clrhost").with_assembly(assembly));
    let mut scenario = Scenario::new("in-memory");
    let app = scenario.process(ProcessPlan::new("App.exe").with_clr(clr));

    // Attach, let it compile something, ask for the rundown, stop.
    let session = SessionPlan::new("clr", "clr.etl").with(CLR_RUNTIME, 0x18, 5);
    scenario.at(SECOND, Action::Start(Box::new(session)));
    scenario.at(2 * SECOND, Action::Work { process: app, work: Work::Jit(5) });
    let rundown = etl_synth::model::EnablePlan::new(CLR_RUNDOWN, 0x138, 5);
    scenario.at(3 * SECOND, Action::Enable { session: "clr".into(), plan: rundown });
    scenario.at(4 * SECOND, Action::Stop { session: "clr".into() });

    // Only the bytes: `etl_synth::in_memory(&scenario)`. With the truth beside them:
    let (mut files, mut truth) = (Memory::default(), Gathered::default());
    etl_synth::simulate(&scenario, &mut files, &mut truth)?;
    for (name, bytes) in files.into_files() {
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
