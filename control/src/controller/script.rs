//! The commands of a script for the command prompt (.cmd).

use etl_format::Guid;

use super::{TOOLS, tool};
use crate::nearest_names;

/// The commands of a script (.cmd) that may be command lines of sessions.
///
/// A line that ends with `^` continues in the next one. Comments, labels and what the command
/// prompt executes itself (`echo`, `timeout` ...) are left out.
///
/// ```
/// use etl_control::controller::Script;
///
/// let script = Script::parse("@echo off\nxperf -start clr ^\n -f a.etl\nxperff -stop clr");
/// assert_eq!(script.commands.len(), 1);
/// assert_eq!(script.commands[0].line, 2);
/// assert_eq!(script.commands[0].text, "xperf -start clr  -f a.etl");
/// assert_eq!(script.unknown[0].nearest, ["xperf"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// The commands, in order. Each may be parsed as a [`CommandLine`](super::CommandLine).
    pub commands: Vec<ScriptCommand>,
    /// Commands of programs that record no traces.
    pub unknown: Vec<UnknownCommand>,
}

/// A command of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptCommand {
    /// The number of its first line, from 1.
    pub line: usize,
    /// Its text, joined from its lines.
    pub text: String,
}

/// A command of a program that records no traces.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownCommand {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The program, in lower case.
    pub program: String,
    /// The tools with names most like it.
    pub nearest: Vec<&'static str>,
}

impl Script {
    /// Splits a script into its commands.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut script = Script::default();
        for command in joined_lines(text) {
            let Some(program) = first_word(&command.text) else {
                continue;
            };
            match classify(&program) {
                Kind::Session => script.commands.push(command),
                Kind::Prompt => {}
                Kind::Unknown => {
                    let nearest = nearest_names(&program, TOOLS.map(super::Tool::name));
                    script.unknown.push(UnknownCommand {
                        line: command.line,
                        program,
                        nearest,
                    });
                }
            }
        }
        script
    }
}

/// The kind of a command.
enum Kind {
    /// It may be a command line of a session.
    Session,
    /// The command prompt executes it itself, or it only waits.
    Prompt,
    /// Neither.
    Unknown,
}

/// Commands of the command prompt, and programs that only wait: they enable nothing.
const PROMPT: &[&str] = &[
    "rem", "echo", "echo.", "timeout", "pause", "ping", "sleep", "cls", "title", "color", "set",
    "setlocal", "endlocal", "cd", "chdir", "pushd", "popd", "exit", "goto", "if", "(", ")",
];

/// The commands with their lines joined, and without the `@` before them.
fn joined_lines(text: &str) -> Vec<ScriptCommand> {
    let mut commands: Vec<ScriptCommand> = Vec::new();
    let mut continues = false;
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let text = text.trim_end();
        let content = text.strip_suffix('^').unwrap_or(text);
        match commands.last_mut() {
            Some(command) if continues => command.text.push_str(content),
            _ => commands.push(ScriptCommand {
                line,
                text: content.to_owned(),
            }),
        }
        continues = text.ends_with('^');
    }
    for command in &mut commands {
        command.text = command.text.trim_start_matches([' ', '\t', '@']).to_owned();
    }
    joined_settings(commands)
}

/// The same with the settings of a .NET process that are on consecutive lines as one command.
fn joined_settings(commands: Vec<ScriptCommand>) -> Vec<ScriptCommand> {
    let mut out: Vec<ScriptCommand> = Vec::new();
    let mut was_setting = false;
    for mut command in commands {
        let words = ["set ", "export ", "SET "];
        let text = words
            .iter()
            .find_map(|word| command.text.strip_prefix(word));
        let text = text.unwrap_or(&command.text).trim_start().to_owned();
        let is_setting = is_setting(&text);
        if is_setting {
            command.text = text;
        }
        match out.last_mut() {
            Some(last) if is_setting && was_setting => {
                last.text.push(' ');
                last.text.push_str(&command.text);
            }
            _ => out.push(command),
        }
        was_setting = is_setting;
    }
    out
}

/// Whether a command begins with a setting of EventPipe.
fn is_setting(command: &str) -> bool {
    let command = command.trim_start_matches("$env:").to_ascii_lowercase();
    let prefixes = ["dotnet_", "complus_"];
    let name = prefixes.iter().find_map(|p| command.strip_prefix(p));
    name.is_some_and(|name| name.starts_with("enableeventpipe") || name.starts_with("eventpipe"))
}

/// The program of a command in lower case, or the list of providers.
fn first_word(command: &str) -> Option<String> {
    let word = match command.strip_prefix('"') {
        Some(path) => path.split('"').next(),
        None => command.split_whitespace().next(),
    };
    word.map(str::to_ascii_lowercase)
}

fn classify(program: &str) -> Kind {
    if is_setting(program) {
        return Kind::Session;
    }
    if program.starts_with(':') || PROMPT.contains(&program) {
        return Kind::Prompt;
    }
    // A path also has a colon.
    let is_list = program.contains(':') && !program.contains('\\');
    if is_list || program.parse::<Guid>().is_ok() || tool(program).is_some() || program == "stop" {
        return Kind::Session;
    }
    Kind::Unknown
}

#[cfg(test)]
mod tests {
    use super::Script;

    #[test]
    fn commands_are_joined_at_carets_without_other_commands() {
        let script = "\u{feff}@echo off\r\nrem xperf -stop a\r\n:: a comment\r\n:label\r\n\r\n\
                      @xperf -start clr ^\r\n  -on runtime:1:5 ^\r\n  -f a.etl\r\ntimeout /t 15 >nul\r\n\
                      \"C:\\My Kit\\xperf.exe\" -stop clr\r\nwpr -cancel\r\nrundown:0x138:5\r\nxperf -stop ^";
        let script = Script::parse(script);
        let commands: Vec<_> = script
            .commands
            .into_iter()
            .map(|c| (c.line, c.text))
            .collect();
        let expected = [
            (6, "xperf -start clr   -on runtime:1:5   -f a.etl"),
            (10, "\"C:\\My Kit\\xperf.exe\" -stop clr"),
            (12, "rundown:0x138:5"),
            (13, "xperf -stop "),
        ];
        assert_eq!(
            commands,
            expected.map(|(line, text)| (line, text.to_owned()))
        );
        assert_eq!(script.unknown.len(), 1);
        assert_eq!(script.unknown[0].program, "wpr");
    }
}
