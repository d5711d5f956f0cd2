//! The commands of a script for the command prompt (.cmd).

use etl_control::controller::{Tool, tool};
use etl_format::Guid;

use crate::missing::nearest;

/// A command that may be one of the tools.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// The number of its first line, from 1.
    pub line: usize,
    pub text: String,
}

/// What the command prompt does itself or what only waits: it enables nothing.
const OTHERS: &[&str] = &[
    "rem", "echo", "echo.", "timeout", "pause", "ping", "sleep", "cls", "title", "color", "set",
    "setlocal", "endlocal", "cd", "chdir", "pushd", "popd", "exit", "goto", "if", "(", ")",
];

/// The commands of the tools: lines that end with `^` go on in the next one. Passes over comments,
/// labels and what the command prompt does itself, and notes other commands on standard error.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for (line, text) in (1..).zip(script.trim_start_matches('\u{feff}').lines()) {
        let (text, ends_with_caret) = match text.trim_end().strip_suffix('^') {
            Some(text) => (text, true),
            None => (text, false),
        };
        match commands.last_mut().filter(|_| goes_on) {
            Some(command) => command.text.push_str(text),
            None => commands.push(Command { line, text: text.to_owned() }),
        }
        goes_on = ends_with_caret;
    }
    for command in &mut commands {
        command.text = command.text.trim_start_matches([' ', '\t', '@']).to_owned();
    }
    commands.retain(is_of_tools);
    commands
}

/// Whether the command is to be read. Notes those that are not known.
fn is_of_tools(command: &Command) -> bool {
    let first = match command.text.strip_prefix('"') {
        Some(path) => path.split('"').next(),
        None => command.text.split_whitespace().next(),
    };
    let Some(first) = first.map(str::to_ascii_lowercase) else { return false };
    // A path has a colon, too.
    let is_list = first.contains(':') && !first.contains('\\') || first.parse::<Guid>().is_ok();
    if first.starts_with(':') || OTHERS.contains(&first.as_str()) {
        return false;
    }
    if tool(&first).is_some() || is_list || first == "stop" {
        return true;
    }
    let tools = [Tool::Xperf, Tool::Logman, Tool::Tracelog, Tool::Tracerpt, Tool::Tracefmt];
    let nearest = nearest(&first, &tools.map(|tool| tool.name().to_owned()).into());
    stderr_line!(
        "note: line {}: {first} is left out: no command of a session{nearest}",
        command.line
    );
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_joined_at_carets_and_without_those_of_the_prompt() {
        let script = "\u{feff}@echo off\r\nrem xperf -stop a\r\n:: a comment\r\n:label\r\n\r\n\
                      @xperf -start clr ^\r\n  -on runtime:1:5 ^\r\n  -f a.etl\r\ntimeout /t 15 >nul\r\n\
                      \"C:\\My Kit\\xperf.exe\" -stop clr\r\nwpr -cancel\r\nrundown:0x138:5\r\nxperf -stop ^";
        let found: Vec<_> = commands(script).into_iter().map(|c| (c.line, c.text)).collect();
        let expected = [
            (6, "xperf -start clr   -on runtime:1:5   -f a.etl"),
            (10, "\"C:\\My Kit\\xperf.exe\" -stop clr"),
            (12, "rundown:0x138:5"),
            (13, "xperf -stop "),
        ];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }
}
