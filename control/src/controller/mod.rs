//! Command lines of the tools that record: `xperf`, `logman`, `tracelog` and `dotnet-trace`, as
//! documents write them and the tools' help describes them, and the settings with which a .NET
//! process records itself.
//!
//! ```
//! use etl_control::controller::{Action, CommandLine};
//!
//! let line = "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl";
//! let read: CommandLine = line.parse()?;
//! let [Action::Start(session)] = &read.actions[..] else { panic!("one session") };
//! assert_eq!(session.name, "clr");
//! assert_eq!(session.file.as_deref(), Some("clr1.etl"));
//! assert_eq!(session.providers[0].level, Some(5));
//! assert_eq!(read.to_string(), line);
//! # Ok::<(), etl_control::controller::LineError>(())
//! ```
//!
//! The parsers know the actions that start, change, feed, flush, stop and merge sessions, with
//! every option that affects the contents of the trace. Other options (schedules, users, sampling)
//! are kept as they are written. Words are split as the command prompt and the C runtime do it;
//! switches may be in any case and begin with a hyphen or with a dash that a document's typesetting
//! made of it. A remark in parentheses after an `xperf` line is kept as a remark.
//!
//! A list of providers alone, `NAME:MASK:LEVEL+...`, and `stop NAME` are read as [`Tool::Plain`].
//! Lines of `tracerpt` and `tracefmt`, which read traces, are also parsed.

mod args;
mod collection;
mod decoders;
#[cfg(test)]
mod dotnet_tests;
mod dotnet_trace;
pub(crate) mod error;
mod explain;
mod flags;
mod format;
mod logman;
mod model;
mod provider_file;
mod script;
mod settings;
#[cfg(test)]
mod tests;
mod tokens;
mod tracelog;
mod xperf;

use std::str::FromStr;

pub use collection::RUNDOWN_KEYWORDS;
pub use error::{Found, LineError};
pub use explain::{ActionExplanation, ProviderExplanation, UnknownName, nearest_providers};
pub use flags::{
    GroupMasks, KernelFlag, TracelogChanges, expand_kernel_flags, kernel_flag_names, kernel_flags,
    kernel_groups, stack_events, tracelog_changes, tracelog_groups,
};
pub use model::{
    Action, CollectedProcess, Collection, CommandLine, FILE_MODES, KERNEL_SESSION, Keywords,
    OtherOption, ProviderRef, ProviderSpec, Session, Tool,
};
pub use provider_file::{ProviderFile, parse_provider_file};
pub use script::{Script, ScriptCommand, UnknownCommand};
pub use tokens::MAX_LINE;

use args::Args;
use tokens::Word;

impl FromStr for CommandLine {
    type Err = LineError;

    fn from_str(line: &str) -> Result<Self, LineError> {
        let mut words = tokens::split(line)?;
        let Some(first) = words.first() else {
            let expected = "a command of xperf, logman or tracelog";
            return Err(LineError::new(line.len()..line.len(), expected, Found::End));
        };
        if settings::are_settings(&words) {
            return Ok(CommandLine {
                tool: Tool::Settings,
                actions: settings::parse(&words)?,
                remark: None,
            });
        }
        let Some(tool) = tool(&first.text) else {
            return plain(&words);
        };
        words.remove(0);
        let remark = if tool == Tool::Xperf {
            remark(line, &mut words)
        } else {
            None
        };
        let args = Args::new(line, words);
        let actions = match tool {
            Tool::Logman => logman::parse(args)?,
            Tool::Tracelog => tracelog::parse(args)?,
            Tool::Tracerpt | Tool::Tracefmt => decoders::parse(args, tool)?,
            Tool::DotnetTrace => dotnet_trace::parse(args)?,
            Tool::Xperf | Tool::Plain | Tool::Settings => xperf::parse(args)?,
        };
        Ok(CommandLine {
            tool,
            actions,
            remark,
        })
    }
}

/// The tools that are programs.
const TOOLS: [Tool; 6] = [
    Tool::Xperf,
    Tool::Logman,
    Tool::Tracelog,
    Tool::Tracerpt,
    Tool::Tracefmt,
    Tool::DotnetTrace,
];

/// The tool that a program's name or path names.
///
/// ```
/// use etl_control::controller::{Tool, tool};
///
/// assert_eq!(tool("C:\\\\Kits\\\\XPERF.EXE"), Some(Tool::Xperf));
/// assert_eq!(tool("notepad.exe"), None);
/// ```
#[must_use]
pub fn tool(path: &str) -> Option<Tool> {
    let name = program(path);
    TOOLS.into_iter().find(|tool| tool.name() == name)
}

/// A program's name without its directory and `.exe`, in lower case.
fn program(path: &str) -> String {
    let name = etl_format::file_name(path).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// A list of providers without a tool, or `stop NAME`.
fn plain(words: &[Word]) -> Result<CommandLine, LineError> {
    let expected = "xperf, logman, tracelog, tracerpt, tracefmt, dotnet-trace, a setting \
                    DOTNET_EventPipeConfig=.., or a list of providers NAME:MASK:LEVEL";
    let Some(first) = words.first() else {
        return Err(LineError::new(0..0, expected, Found::End));
    };
    if let [stop, session] = words
        && stop.text.eq_ignore_ascii_case("stop")
    {
        let action = Action::Stop {
            session: session.text.clone(),
            direct: true,
        };
        return Ok(CommandLine {
            tool: Tool::Plain,
            actions: vec![action],
            remark: None,
        });
    }
    let list = first.text.contains(':') || first.text.parse::<etl_format::Guid>().is_ok();
    if !list || words.len() > 1 {
        let error = args::wrong(first, expected);
        return Err(if program(&first.text) == "wpr" {
            error.hint("wpr records by profiles: its lines name no providers")
        } else {
            error
        });
    }
    let providers = xperf::providers(first)?;
    let action = Action::Enable {
        session: String::new(),
        providers,
        kernel: Vec::new(),
    };
    Ok(CommandLine {
        tool: Tool::Plain,
        actions: vec![action],
        remark: None,
    })
}

/// Removes a remark in parentheses from the end of the line.
fn remark(line: &str, words: &mut Vec<Word>) -> Option<String> {
    let first = words
        .iter()
        .position(|word| !word.quoted && word.text.starts_with('('))?;
    let start = words.get(first)?.span.start;
    let text = line.get(start..)?.trim();
    let text = text.strip_prefix('(')?.strip_suffix(')')?;
    words.truncate(first);
    Some(text.to_owned())
}
