use etl_schema::providers::CLR_RUNDOWN;
use etl_synth::model::{CodeKind, MethodPlan, ProcessPlan, Scenario, SessionPlan};
use etl_synth::truth::InMemoryTruth;
use etl_synth::{SECOND, Simulation};

/// The decoder under test: names of the events that the tables know, in time order.
fn names(trace: &[u8]) -> Vec<String> {
    let mut trace = etl_events::from_bytes(trace).unwrap();
    let mut events = trace.events().without_names();
    let mut out = Vec::new();
    while let Some(event) = events.next().unwrap() {
        if event.record().is_event() && event.schema().is_some() {
            out.push(event.name().to_owned());
        }
    }
    out
}

/// A decoder must find exactly the events that the truth lists as recorded.
fn check_decoder(scenario: &Scenario) {
    let mut truth = InMemoryTruth::default();
    let files = Simulation::new(scenario)
        .observer(&mut truth)
        .run_in_memory()
        .unwrap();
    let recorded: Vec<&str> = truth.recorded(0).map(|event| event.name.as_str()).collect();
    assert!(!recorded.is_empty(), "{} has events", files[0].name);
    assert_eq!(names(&files[0].bytes), recorded, "{}", files[0].name);
}

#[test]
fn decoder_finds_events_of_every_script() {
    let files = std::fs::read_dir("cases")
        .unwrap()
        .map(|file| file.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|e| e == "kdl")) {
        let script = std::fs::read_to_string(&path).unwrap();
        let scenario = etl_synth::Script::new(&path.to_string_lossy(), &script).parse();
        check_decoder(&scenario.unwrap());
    }
}

/// Many similar cases are easier to write in Rust: modules without methods, with one method, and
/// with more than fit into a buffer.
#[test]
fn decoder_finds_modules_of_any_size() {
    for methods in [0, 1, 100, 5_000] {
        let mut scenario = Scenario::new(format!("{methods} methods"));
        let methods = MethodPlan::many(methods, CodeKind::Jitted);
        scenario.process(ProcessPlan::managed("Shop.exe", methods));
        let session = SessionPlan::new("rundown", "rundown.etl").with(CLR_RUNDOWN, 0x138, 5);
        scenario.start(SECOND, session).stop(30 * SECOND, "rundown");
        check_decoder(&scenario);
    }
}
