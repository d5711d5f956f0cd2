//! The self-test of `etlkit doctor`: a scenario is simulated in memory, read and verified.

use etl_events::OpenOptions;
use etl_synth::corpus_lock::{Checksum, Outputs};
use etl_synth::{Script, Simulation, corpus};
use etl_verify::{Verdict, Verifier};

/// The scenario of the corpus that is simulated.
const SCENARIO: &str = "recipe";

/// A step of the self-test.
pub(super) struct Step {
    /// What it does.
    pub name: &'static str,
    /// What was found, or what is wrong.
    pub result: Result<String, String>,
}

/// Runs the steps. The ones after a failed one are left out.
pub(super) fn run() -> Vec<Step> {
    let mut steps = Vec::new();
    let trace = match simulate() {
        Ok(trace) => trace,
        Err(reason) => {
            steps.push(Step {
                name: "simulate",
                result: Err(reason),
            });
            return steps;
        }
    };
    steps.push(Step {
        name: "simulate",
        result: compare(&trace),
    });
    steps.push(Step {
        name: "read",
        result: read(&trace.bytes),
    });
    steps.push(Step {
        name: "verify",
        result: verify(&trace),
    });
    steps
}

/// A simulated trace.
struct SimulatedTrace {
    name: String,
    bytes: Vec<u8>,
}

fn simulate() -> Result<SimulatedTrace, String> {
    let script = corpus::scripts()
        .find(|script| script.name == SCENARIO)
        .ok_or_else(|| format!("the corpus lacks the scenario {SCENARIO}"))?;
    let scenario = Script::new(script.name, script.text)
        .include(&corpus::include)
        .parse()
        .map_err(|errors| errors.to_string())?;
    let files = Simulation::new(&scenario)
        .run_in_memory()
        .map_err(|error| error.to_string())?;
    let file = files.into_iter().next().ok_or("no trace was written")?;
    Ok(SimulatedTrace {
        name: file.name,
        bytes: file.bytes,
    })
}

/// Compares the bytes with those that this version writes on every machine.
fn compare(trace: &SimulatedTrace) -> Result<String, String> {
    let name = format!("{SCENARIO}/{}", trace.name);
    let found = Outputs::from([(name.clone(), Checksum::of(&trace.bytes))]);
    let differences = corpus::lock().differences(&found, &[SCENARIO.to_owned()]);
    match differences.iter().find(|line| line.contains(&name)) {
        Some(difference) => Err(difference.clone()),
        None => Ok(format!(
            "{}, {} bytes, as this version writes them everywhere",
            trace.name,
            trace.bytes.len()
        )),
    }
}

/// Reads the trace as `etlkit dump` does.
fn read(bytes: &[u8]) -> Result<String, String> {
    let mut trace = OpenOptions::new()
        .from_bytes(bytes)
        .map_err(|error| error.to_string())?;
    let mut events = trace.events();
    let mut count = 0u64;
    let mut unnamed = 0u64;
    while let Some(event) = events.next().map_err(|error| error.to_string())? {
        count += 1;
        if event.record().is_event() && event.fields().is_none() {
            unnamed += 1;
        }
    }
    if count == 0 {
        return Err("the trace has no events".to_owned());
    }
    if unnamed > 0 {
        return Err(format!("{unnamed} of {count} events have no fields"));
    }
    Ok(format!("{count} events, all with names and fields"))
}

fn verify(trace: &SimulatedTrace) -> Result<String, String> {
    let report = Verifier::new()
        .verify(trace.bytes.as_slice(), &trace.name)
        .map_err(|error| error.to_string())?;
    match report.verdict {
        Verdict::Complete => Ok("the verdict is complete".to_owned()),
        _ => Err(report.text().to_string()),
    }
}
