//! Targets that read text: scripts, configuration, command lines.

use std::cell::Cell;
use std::sync::Arc;

use etl_control::controller::CommandLine;
use etl_control::mask::explain;
use etl_schema::decode::Decoder;
use etl_schema::tables::TableSet;
use etl_schema::tables::{Provider, Registry};
use etl_synth::Script;
use etl_verify::Enabled;
use etl_verify::Truth;

use super::text;

/// Every file that the script includes is the script itself, up to four times.
pub(super) fn scenario(data: &[u8]) {
    let script = text(data);
    let left = Cell::new(4u8);
    let include = |_: &str| match left.get().checked_sub(1) {
        None => Err(std::io::ErrorKind::NotFound.into()),
        Some(less) => {
            left.set(less);
            Ok(script.clone().into_owned())
        }
    };
    let script = Script::new("fuzz.kdl", &script)
        .parameters([("n", "3")])
        .seed(1);
    if let Err(errors) = script.include(&include).parse() {
        assert!(!errors.as_slice().is_empty());
        for error in errors.as_slice().iter().take(10) {
            assert!(!error.to_string().is_empty());
            assert!(!error.report().is_empty());
        }
    }
}

pub(super) fn config(data: &[u8]) {
    match etl_verify::Config::parse(&text(data)) {
        Ok(_) => {}
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}

/// Looks up files by names that the truth contains, and by others.
pub(super) fn truth(data: &[u8]) {
    match Truth::read(data) {
        Ok(truth) => {
            let known = truth.files().take(20);
            for name in known.chain(["", "other.etl"]) {
                if let Some(enabled) = truth.of(name) {
                    assert!(enabled.iter().all(|e| e.session().is_some()));
                }
            }
        }
        Err(why) => assert!(why.to_string().starts_with("line ")),
    }
}

/// A list of providers, and the explanation of a mask for a provider of the tables.
pub(super) fn mask(data: &[u8]) {
    let written = text(data);
    if let Ok(enabled) = Enabled::parse(&written) {
        for one in enabled {
            assert!(!format!("{one:?}").is_empty());
        }
    }
    let (mask, level) = match data.split_first_chunk::<8>() {
        Some((mask, rest)) => (
            u64::from_le_bytes(*mask),
            rest.first().copied().unwrap_or(5),
        ),
        None => return,
    };
    let providers: Vec<_> = Registry::builtin().providers().collect();
    if let Some(provider) = providers.get(usize::from(level) % providers.len().max(1)) {
        let explained = explain(TableSet::Shipped, provider, mask, level);
        assert_eq!(explained.unnamed & !mask, 0);
        let _ = explained.errata(provider, mask);
    }
}

/// A parsed command line is written in one spelling that has the same meaning.
pub(super) fn controller(data: &[u8]) {
    let line = text(data);
    match line.parse::<CommandLine>() {
        Ok(command) => {
            let again = command.to_string();
            let back: CommandLine = again.parse().unwrap_or_else(|e| panic!("{again:?}: {e}"));
            assert_eq!(back, command, "{again:?}");
        }
        Err(error) => {
            assert!(
                line.get(error.span.clone()).is_some(),
                "{:?} of {line:?}",
                error.span
            );
            assert!(!error.to_string().is_empty());
        }
    }
}

pub(super) fn table(data: &[u8]) {
    let table = text(data);
    if let Ok(provider) = Provider::parse("fuzz.txt", &table) {
        for event in provider.events {
            let _ = Decoder::new(Arc::new(event.schema));
        }
    }
    let _ = Provider::parse_classes("fuzz.txt", &table);
}
