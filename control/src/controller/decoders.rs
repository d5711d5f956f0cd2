//! Lines of the tools that read traces: `tracerpt` and `tracefmt`. They change no session.
//!
//! Source: the references of the tools' command syntax.

use super::args::{Args, unknown, values_of};
use super::error::LineError;
use super::model::{Action, Tool};

/// Options of `tracerpt`, with their values: see [`values_of`].
const TRACERPT: &str = "config=1 df=1 en=1 export=* f=1 gmt i=1 import=* int=1 lr max=1 of=1 pdb=1 \
    report=* rl=1 rts summary=* tmf=1 tp=1 ver y";
/// Options of `tracefmt`.
const TRACEFMT: &str = "csv display displayonly gmt hex hires i=1 max=1 nosource nosummary ods p=1 \
    pdb=1 r=1 seq sortabletime summary=1 tmf=1 utc v xml";

pub(super) fn parse(mut args: Args, tool: Tool) -> Result<Vec<Action>, LineError> {
    let switches = if tool == Tool::Tracefmt {
        TRACEFMT
    } else {
        TRACERPT
    };
    let mut files = Vec::new();
    let mut sessions = Vec::new();
    let mut output = None;
    let mut options = Vec::new();
    while !args.is_empty() {
        let Some(switch) = args.switch() else {
            files.extend(args.optional().map(|word| word.text));
            continue;
        };
        match switch.name.as_str() {
            "l" if !switch.negated && tool == Tool::Tracerpt => {
                files.push(args.text("a trace file")?);
            }
            "rt" if !switch.negated => sessions.push(args.text("the name of a session")?),
            "o" if !switch.negated => output = Some(args.text("the file that is made")?),
            name => match values_of(switches, name).filter(|_| !switch.negated) {
                Some(values) => options.push(args.other(name.to_owned(), values)?),
                None => {
                    let expected = format!("a switch of {}", tool.name());
                    let names = switches.replace("=1", "").replace("=*", "");
                    return Err(unknown(&switch, &expected, &names));
                }
            },
        }
    }
    if files.is_empty() && sessions.is_empty() {
        return Err(args.missing("a trace file, or -rt with a session"));
    }
    Ok(vec![Action::Decode {
        files,
        sessions,
        output,
        options,
    }])
}
