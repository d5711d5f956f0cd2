//! Parser of the settings (environment variables) with which a .NET process records itself:
//! `DOTNET_EnableEventPipe` and its companions, `COMPlus_` before .NET 6.

use super::args::wrong;
use super::collection::{self, unquoted};
use super::error::LineError;
use super::model::{Action, CollectedProcess, Collection};
use super::tokens::Word;

/// Prefixes of the settings of the runtime.
const PREFIXES: [&str; 2] = ["DOTNET_", "COMPlus_"];

/// The runtime's own level if a provider of the settings has none.
const DEFAULT_LEVEL: u8 = 5;

/// A setting of EventPipe.
struct Setting<'w> {
    /// Its name without the prefix.
    name: &'w str,
    value: &'w str,
    word: &'w Word,
}

/// The setting of EventPipe that a word is, if it is one: `DOTNET_EventPipeConfig=...`.
fn setting(word: &Word) -> Option<Setting<'_>> {
    let text = unquoted(&word.text);
    let text = text.strip_prefix("$env:").unwrap_or(text);
    let (name, value) = text.split_once('=')?;
    for prefix in PREFIXES {
        let has_prefix = name
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        let name = name.get(prefix.len()..).unwrap_or_default();
        let lower_case = name.to_ascii_lowercase();
        let is_of_event_pipe =
            lower_case == "enableeventpipe" || lower_case.starts_with("eventpipe");
        if has_prefix && is_of_event_pipe {
            return Some(Setting {
                name,
                value: unquoted(value.trim_matches('"')),
                word,
            });
        }
    }
    None
}

/// Whether the words of a line begin with a setting of EventPipe, perhaps after `set` or `export`.
pub(super) fn are_settings(words: &[Word]) -> bool {
    let first = match words {
        [first, rest @ ..] if is_keyword(first) => rest.first(),
        words => words.first(),
    };
    first.is_some_and(|word| setting(word).is_some())
}

fn is_keyword(word: &Word) -> bool {
    let keywords = ["set", "setx", "export", "env"];
    keywords.contains(&word.text.to_ascii_lowercase().as_str())
}

/// Settings, and perhaps the command that has them.
pub(super) fn parse(words: &[Word]) -> Result<Vec<Action>, LineError> {
    let mut collection = Collection::default();
    let mut rest = words;
    let mut is_enabled = None;
    while let [word, others @ ..] = rest {
        if let Some(setting) = setting(word) {
            apply(&mut collection, &setting, &mut is_enabled)?;
        } else if !is_keyword(word) {
            break;
        }
        rest = others;
    }
    if !rest.is_empty() {
        let command = rest.iter().map(|word| word.text.clone()).collect();
        collection.process = CollectedProcess::Command(command);
    }
    if collection.named.is_empty() {
        collection.providers = collection::default_settings();
    } else {
        collection.enable_providers();
    }
    if is_enabled == Some(false) {
        collection.providers.clear();
        collection.named.clear();
        collection.rundown = Some(false);
    }
    Ok(vec![Action::Collect(Box::new(collection))])
}

fn apply(
    collection: &mut Collection,
    setting: &Setting<'_>,
    is_enabled: &mut Option<bool>,
) -> Result<(), LineError> {
    let word = setting.word;
    match setting.name.to_ascii_lowercase().as_str() {
        "enableeventpipe" => {
            let number = hex(setting.value).ok_or_else(|| wrong(word, "0 or 1"))?;
            *is_enabled = Some(number != 0);
        }
        "eventpipeconfig" => {
            let list = Word {
                text: setting.value.to_owned(),
                span: word.span.clone(),
                quoted: word.quoted,
            };
            collection.named = collection::providers(&list, DEFAULT_LEVEL)?;
        }
        "eventpipeoutputpath" | "eventpipeoutputfile" => {
            collection.file = Some(setting.value.to_owned());
        }
        "eventpipecircularmb" => {
            let expected = "the size of the buffer in MB, hexadecimal";
            collection.buffer_mb = Some(hex(setting.value).ok_or_else(|| wrong(word, expected))?);
        }
        "eventpiperundown" => {
            let number = hex(setting.value).ok_or_else(|| wrong(word, "0 or 1"))?;
            collection.rundown = Some(number != 0);
        }
        _ => collection.others.push(super::OtherOption {
            name: setting.name.to_owned(),
            values: vec![setting.value.to_owned()],
        }),
    }
    Ok(())
}

/// A number as the runtime reads its settings: hexadecimal.
fn hex(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16).ok()
}
