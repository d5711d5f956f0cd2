//! `etlkit spec`: what the tables say.

mod line;
mod list;
mod mask;
mod tables;

use std::fmt;

use clap::{Subcommand, ValueEnum};
use etl_schema::tables::{Profile, Provider, Registry};
use serde_json::Value;

use crate::Outcome;
use crate::error::Failure;
use crate::filter::number;
use crate::output::{self, ReportFormat};

/// Arguments of `etlkit spec`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A provider is named by its name, the end of it (runtime, rundown) or its GUID; the kernel's classes
of events by theirs (Thread, FileIo).

Examples:
  etlkit spec providers
  etlkit spec keywords runtime thread
  etlkit spec events runtime method
  etlkit spec events rundown method --profile documented
  etlkit spec mask rundown 0xB8
  etlkit spec mask runtime 0x1CCBD --level 4 --format json
  etlkit spec line 'xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl'
  etlkit spec tables")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// How to print
    #[arg(long, value_enum, default_value_t, global = true)]
    format: ReportFormat,
    /// Whose word counts where reference pages and runtimes disagree
    #[arg(long, value_enum, default_value_t, global = true)]
    profile: ProfileArg,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ProfileArg {
    /// The runtimes', as real traces show it
    #[default]
    Shipped,
    /// The reference pages', as printed
    Documented,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Shipped => Profile::Shipped,
            ProfileArg::Documented => Profile::Documented,
        }
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the providers and the kernel's classes that are described
    #[command(after_help = "\
Examples:
  etlkit spec providers
  etlkit spec providers dotnet --format json")]
    Providers {
        /// Only those with this text in their name or GUID
        search: Option<String>,
    },
    /// List the keywords of a provider
    #[command(after_help = "\
Examples:
  etlkit spec keywords runtime
  etlkit spec keywords runtime thread
  etlkit spec keywords rundown 0x138")]
    Keywords {
        /// The provider
        provider: String,
        /// Only keywords with this text in their name, or with a bit of this mask
        search: Option<String>,
    },
    /// List the events of a provider, with their fields
    #[command(after_help = "\
Examples:
  etlkit spec events runtime
  etlkit spec events runtime 143
  etlkit spec events rundown method --profile documented
  etlkit spec events Thread")]
    Events {
        /// The provider
        provider: String,
        /// Only events with this id, or with this text in their symbol
        search: Option<String>,
    },
    /// Take a mask apart: its keywords, the events it gives, and what it will not give
    #[command(after_help = "\
Examples:
  etlkit spec mask rundown 0xB8
  etlkit spec mask runtime 0x1CCBD --level 4 --format json")]
    Mask {
        /// The provider
        provider: String,
        /// The mask, decimal or 0x and hexadecimal; 0 stands for all keywords
        #[arg(value_parser = number::<u64>)]
        mask: u64,
        /// The level of the session; 0 stands for all levels
        #[arg(long, default_value_t = 5)]
        level: u8,
    },
    /// Read a command line of xperf, logman or tracelog: what it asks for, and what it will not give
    Line(line::LineArgs),
    /// Print the documents' tables of keyword combinations, computed from the CLR's rules
    #[command(after_help = "\
Examples:
  etlkit spec tables
  etlkit spec tables --level 4 --format json")]
    Tables {
        /// The level of the session; 0 stands for all levels
        #[arg(long, default_value_t = 5)]
        level: u8,
    },
}

/// What a subcommand prints: for people, and for machines.
type Printed = (String, Value);

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let profile = args.profile.into();
    let search = |s: &Option<String>| s.as_deref().map(str::to_ascii_lowercase);
    let printed = match &args.what {
        What::Providers { search: s } => list::providers(profile, search(s).as_deref())?,
        What::Keywords { provider, search: s } => {
            list::keywords(find(profile, provider)?, search(s).as_deref())?
        }
        What::Events { provider, search: s } => {
            list::events(find(profile, provider)?, search(s).as_deref())?
        }
        What::Mask { provider, mask, level } => mask::mask(profile, provider, *mask, *level)?,
        What::Line(args) => line::run(args)?,
        What::Tables { level } => tables::tables(profile, *level),
    };
    print(args.format, &printed)
}

/// Prints in the format that is asked for.
pub(crate) fn print(format: ReportFormat, (text, json): &Printed) -> Result<Outcome, Failure> {
    match format {
        ReportFormat::Text => output::print(text)?,
        ReportFormat::Json => {
            let mut json = serde_json::to_string_pretty(json).unwrap_or_default();
            json.push('\n');
            output::print(&json)?;
        }
    }
    Ok(Outcome::Fine)
}

/// A provider of the profile's tables, or a class of the kernel's.
fn find(profile: Profile, name: &str) -> Result<&'static Provider, Failure> {
    let class = || {
        let classes = Registry::classic().providers().iter();
        let guid = name.parse().ok();
        classes.clone().find(|p| p.name.eq_ignore_ascii_case(name) || Some(p.guid) == guid)
    };
    Registry::profile(profile).find(name).or_else(class).ok_or_else(|| {
        Failure::new(name, "no provider of this name is described")
            .hint("`etlkit spec providers` lists those that are")
    })
}

/// Collects text; writing into a String does not fail.
pub(crate) fn text(f: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut out = String::new();
    let _ = f(&mut out);
    out
}
