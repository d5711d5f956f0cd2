//! Simulates scenario scripts.

use std::io::Write;

use etl_synth::corpus::{self, CorpusScript, TEMPLATES};
use etl_synth::truth::JsonlWriter;
use etl_synth::{Script, ScriptErrors, Simulation};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Result;
use crate::host::Out;

/// The file that lists every event and whether it was recorded.
const TRUTH: &str = "truth.jsonl";

/// A script and its settings.
#[derive(Debug, Deserialize)]
pub struct SynthRequest {
    script: String,
    seed: Option<u64>,
    /// Whether the script is only checked for errors.
    #[serde(default)]
    check: bool,
    #[serde(default)]
    parameters: Vec<Parameter>,
}

/// A parameter of a script.
#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
    value: String,
}

/// The scripts of the corpus, and templates to begin with.
pub fn examples() -> Value {
    let describe = |script: CorpusScript, is_template: bool| json!({ "name": script.name, "text": script.text, "is_template": is_template });
    let templates = TEMPLATES.into_iter().map(|script| describe(script, true));
    let scripts = corpus::scripts().map(|script| describe(script, false));
    templates.chain(scripts).collect()
}

/// Simulates a script. The reply has the names and sizes of the files, whose bytes are written to
/// the host one after the other; or the errors of the script, with their places in bytes.
pub fn simulate(request: &SynthRequest) -> Result<Value> {
    let mut script = Script::new("scenario.kdl", &request.script).include(&corpus::include);
    if let Some(seed) = request.seed {
        script = script.seed(seed);
    }
    for parameter in &request.parameters {
        script = script.parameters([(parameter.name.clone(), parameter.value.clone())]);
    }
    let scenario = match script.parse() {
        Ok(scenario) => scenario,
        Err(errors) => return Ok(json!({ "errors": describe(&errors), "files": [] })),
    };
    if request.check {
        return Ok(json!({ "errors": [], "files": [] }));
    }
    let mut truth = JsonlWriter::new(Vec::new());
    let files = Simulation::new(&scenario)
        .observer(&mut truth)
        .run_in_memory()?;
    let mut written = Vec::new();
    for file in files {
        Out.write_all(&file.bytes)?;
        written.push(json!({ "name": file.name, "size": file.bytes.len() }));
    }
    let truth = truth.into_inner();
    Out.write_all(&truth)?;
    written.push(json!({ "name": TRUTH, "size": truth.len() }));
    Ok(json!({ "errors": [], "files": written }))
}

fn describe(errors: &ScriptErrors) -> Vec<Value> {
    let mut described = Vec::new();
    for error in errors.as_slice() {
        let span = error.span();
        described.push(json!({
            "message": error.message(),
            "label": error.label(),
            "hint": error.hint(),
            "from": span.offset(),
            "to": span.offset() + span.len(),
            "report": error.report(),
        }));
    }
    described
}
