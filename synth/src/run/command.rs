//! Command lines of tools: what a tool prints, and its exit code, when a request of its line is
//! refused. The scenario continues, as a batch file does.

use std::collections::BTreeSet;

use etl_control::controller::Tool;

use crate::error::Result;
use crate::model::ToolCommand;
use crate::truth::{CommandReport, Fact, Refusal, RefusalCode};

use super::Simulator;

/// The collector set was not found, and it exists already: the results of `logman`.
const PLA_E_DCS_NOT_FOUND: u32 = 0x8030_0002;
const PLA_E_DCS_ALREADY_EXISTS: u32 = 0x8030_00b7;

/// Command lines that have failed: their other requests are not performed.
#[derive(Debug, Default)]
pub(super) struct FailedLines(BTreeSet<usize>);

impl FailedLines {
    /// Whether a request is to be performed. The first one of a line begins a new run of it.
    pub fn performs(&mut self, command: &ToolCommand) -> bool {
        if command.part == 0 {
            self.0.remove(&command.number);
        }
        !self.0.contains(&command.number)
    }
}

impl Simulator<'_> {
    /// A request of a command line was performed or, if there is a refusal, was not.
    pub(super) fn finish_command(
        &mut self,
        command: &ToolCommand,
        refusal: Option<Refusal>,
    ) -> Result<()> {
        let (exit_code, output) = match &refusal {
            Some(refusal) => tool_error(command.tool, refusal),
            None if command.part + 1 < command.parts => return Ok(()),
            None => (0, String::new()),
        };
        if refusal.is_some() {
            self.failed_lines.0.insert(command.number);
        }
        let report = CommandReport {
            at: self.now,
            line: command.line.clone(),
            exit_code,
            output,
        };
        self.etw.observer.observe(&Fact::Command(&report))
    }
}

/// The exit code of a tool and what it prints when a request is refused.
fn tool_error(tool: Tool, refusal: &Refusal) -> (i32, String) {
    let Refusal {
        session,
        request,
        code,
        ..
    } = refusal;
    let number = code.number();
    let message = code.message();
    match tool {
        Tool::Logman => {
            let (result, message) = match code {
                RefusalCode::NotFound => (PLA_E_DCS_NOT_FOUND, "Data Collector Set was not found."),
                RefusalCode::AlreadyExists => (
                    PLA_E_DCS_ALREADY_EXISTS,
                    "Data Collector Set already exists.",
                ),
                _ => (0x8007_0000 | number, message),
            };
            (result.cast_signed(), format!("Error:\n{message}"))
        }
        Tool::Tracelog => (
            number.cast_signed(),
            format!("Operation Status:\t{number}L\t{message}"),
        ),
        tool => {
            let subject = if *request == "merge" {
                "Merge ETL"
            } else {
                session
            };
            let name = if tool == Tool::Plain {
                "xperf"
            } else {
                tool.name()
            };
            (
                number.cast_signed(),
                format!("{name}: error: {subject}: {message} ({number:#x})."),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_its_own_words_and_exit_code() {
        let refusal = |code| Refusal {
            at: 0,
            session: "clr".to_owned(),
            request: "stop",
            code,
            message: String::new(),
        };
        let said = |tool, code| tool_error(tool, &refusal(code));
        let (code, text) = said(Tool::Xperf, RefusalCode::AlreadyExists);
        assert_eq!(code, 183);
        assert_eq!(
            text,
            "xperf: error: clr: Cannot create a file when that file already exists. (0xb7)."
        );
        let (code, text) = said(Tool::Tracelog, RefusalCode::NotFound);
        assert_eq!(code, 4201);
        assert!(
            text.starts_with("Operation Status:\t4201L\tThe instance name"),
            "{text}"
        );
        let (code, text) = said(Tool::Logman, RefusalCode::NotFound);
        assert_eq!(
            (code, text.as_str()),
            (-2_144_337_918, "Error:\nData Collector Set was not found.")
        );
    }
}
