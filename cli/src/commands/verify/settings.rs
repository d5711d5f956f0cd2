//! The settings of `etlverify`: configuration file, command line and truth.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use etl_schema::tables::TableSet;
use etl_verify::{Baseline, Config, Enabled, Error, Gates, ProcessSelector, Truth, Verifier};

use super::Args;
use super::report::no_rule;
use crate::error::Failure;
use crate::input;
use crate::threads::{MAX_USEFUL, processors};

/// The choices of the configuration file and the command line.
#[derive(Clone, Default)]
pub(super) struct Settings {
    config: Config,
    threads: usize,
    tables: TableSet,
    processes: ProcessSelector,
    stale: bool,
}

impl Settings {
    pub(super) fn verifier(&self) -> Verifier<'static> {
        let verifier = Verifier::new()
            .policy(self.config.policy.clone())
            .enabled(self.config.enabled.iter().cloned())
            .threads(self.threads)
            .tables(self.tables)
            .processes(self.processes.clone());
        let verifier = if self.config.other_sessions {
            verifier.with_other_sessions()
        } else {
            verifier
        };
        if self.stale {
            verifier.with_stale_records()
        } else {
            verifier
        }
    }
}

/// The settings of the configuration file, overridden by the command line.
pub(super) fn settings(args: &Args) -> Result<Settings, Failure> {
    let file = match &args.config {
        Some(file) => Some(file.clone()),
        None if args.no_config => None,
        None => find_config(),
    };
    let mut config = match file {
        Some(file) => read_config(&file)?,
        None => Config::default(),
    };
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None => (processors() / usize::from(args.jobs)).min(MAX_USEFUL),
    };
    let mut policy = config.policy;
    // --allow overrides the configuration file.
    for name in &args.allow {
        policy = policy.overrule(name).map_err(|_| no_rule(name))?;
    }
    for name in &args.deny {
        policy = policy.deny(name).map_err(|_| no_rule(name))?;
    }
    let mut gates = Gates::default();
    gates.coverage = args.min_coverage;
    gates.process_coverage = args.min_process_coverage;
    gates.sample_coverage = args.min_sample_coverage;
    gates.named_methods = args.min_named_methods;
    gates.pdb_identity = args.min_pdb_identity;
    config.policy = policy.require(gates);
    config.other_sessions |= args.other_sessions;
    for text in &args.enable {
        config.enabled.extend(enabled(text)?);
    }
    Ok(Settings {
        config,
        threads,
        tables: args.event_tables,
        processes: args.processes.selector(),
        stale: args.stale,
    })
}

pub(super) fn read_truth(file: &Path) -> Result<Truth, Failure> {
    const HINT: &str = "--truth takes the truth.jsonl that `etlkit synth` writes";
    let opened: Box<dyn Read> = match input::is_stdin(file) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(input::open_file(file).map_err(|failure| failure.hint(HINT))?),
    };
    Truth::read(io::BufReader::new(opened))
        .map_err(|e| Failure::new(input::display(file), e.to_string()).hint(HINT))
}

pub(super) fn read_baseline(file: &Path) -> Result<Baseline, Failure> {
    const HINT: &str = "--write-baseline writes such a file";
    let text = input::read_text(file, "a baseline").map_err(|failure| failure.hint(HINT))?;
    Baseline::parse(&text).map_err(|e| Failure::new(input::display(file), e.to_string()).hint(HINT))
}

/// The settings for files, with the providers that their sessions enabled according to the truth.
pub(super) fn with_truth(
    settings: &Settings,
    truth: Option<&Truth>,
    files: &[PathBuf],
) -> Result<Settings, Failure> {
    let mut settings = settings.clone();
    let Some(truth) = truth else {
        return Ok(settings);
    };
    for file in files {
        let name = file
            .file_name()
            .map(|n| n.to_string_lossy())
            .unwrap_or_default();
        let Some(enabled) = truth.of(&name) else {
            let described: Vec<_> = truth.files().collect();
            let hint = if described.is_empty() {
                "it describes no file: is it the truth.jsonl of `etlkit synth`?".to_owned()
            } else {
                format!("it describes {}", described.join(", "))
            };
            return Err(
                Failure::new(input::display(file), "is not described by the truth file").hint(hint),
            );
        };
        settings.config.enabled.extend(enabled);
    }
    Ok(settings)
}

/// The configuration file in this directory or the nearest parent, up to the root of the
/// repository.
fn find_config() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    for directory in here.ancestors() {
        let file = directory.join(Config::FILE_NAME);
        if file.is_file() {
            return Some(file);
        }
        if directory.join(".git").exists() {
            return None;
        }
    }
    None
}

fn read_config(file: &Path) -> Result<Config, Failure> {
    let hint = "docs/verify.md describes the file; --no-config ignores it";
    let text = input::read_text(file, "a configuration").map_err(|failure| failure.hint(hint))?;
    Config::parse(&text).map_err(|e| {
        Failure::new(input::display(file), e.to_string())
            .lines()
            .hint(hint)
    })
}

fn enabled(text: &str) -> Result<Vec<Enabled>, Failure> {
    Enabled::parse(text).map_err(|e| {
        let reason = match e {
            Error::Enable { reason, .. } => reason,
            e => e.to_string(),
        };
        Failure::new(text, reason)
            .hint("an example: --enable Microsoft-Windows-DotNETRuntimeRundown:0x138:5")
    })
}
