//! `etlkit spec`: looks up providers, keywords, events and masks in the tables.

mod line;
mod list;
mod mask;
mod tables;

use clap::Subcommand;
use etl_control::controller::nearest_providers;
use etl_schema::providers;
use etl_schema::tables::{Provider, Registry, TableSet};
use serde_json::Value;

use crate::Outcome;
use crate::choice::{EVENT_TABLES, one_of};
use crate::error::Failure;
use crate::filter::number;
use crate::missing::nearest;
use crate::output::{self, ReportFormat};

/// Arguments of `etlkit spec`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A provider is given by its name, the end of its name (runtime, Kernel-Process) or its GUID; a class
of kernel events by its name (Thread, FileIo).

Examples:
  etlkit spec providers
  etlkit spec events Microsoft-Windows-Kernel-Process
  etlkit spec keywords runtime thread
  etlkit spec events runtime method
  etlkit spec events rundown method --event-tables documented
  etlkit spec mask rundown 0xB8
  etlkit spec mask runtime 0x1CCBD --level 4 --format json
  etlkit spec line 'xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl'
  etlkit spec tables")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Output format; docs/json.md describes the JSON
    #[arg(long, value_enum, default_value_t, global = true)]
    format: ReportFormat,
    /// Definitions of the CLR events to use where the reference pages and the runtimes disagree
    #[arg(long, value_parser = one_of(EVENT_TABLES), value_name = "TABLES", default_value = "shipped",
        global = true)]
    event_tables: TableSet,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the providers and kernel event classes in the tables, including providers of Windows
    #[command(after_help = "\
Examples:
  etlkit spec providers
  etlkit spec providers dotnet --format json")]
    Providers {
        /// Show only providers with this text in name or GUID
        search: Option<String>,
    },
    /// List the keywords of a provider
    #[command(after_help = "\
Examples:
  etlkit spec keywords runtime
  etlkit spec keywords runtime thread
  etlkit spec keywords rundown 0x138")]
    Keywords {
        /// Name, end of the name, or GUID of the provider
        provider: String,
        /// Show only keywords with this text in their name, or with a bit of this mask
        search: Option<String>,
    },
    /// List the events of a provider, with their fields
    #[command(after_help = "\
Examples:
  etlkit spec events runtime
  etlkit spec events runtime 143
  etlkit spec events rundown method --event-tables documented
  etlkit spec events Thread")]
    Events {
        /// Name, end of the name, or GUID of the provider
        provider: String,
        /// Show only events with this id, or with this text in their name
        search: Option<String>,
    },
    /// Explain a keyword mask: its keywords, and the events that it enables and does not enable
    #[command(after_help = "\
Examples:
  etlkit spec mask rundown 0xB8
  etlkit spec mask runtime 0x1CCBD --level 4 --format json")]
    Mask {
        /// Name, end of the name, or GUID of the provider
        provider: String,
        /// Keyword mask, decimal or hexadecimal with 0x; 0 means all keywords
        #[arg(value_parser = number::<u64>)]
        mask: u64,
        /// Level of the session; 0 means all levels
        #[arg(long, default_value_t = 5, value_parser = number::<u8>)]
        level: u8,
    },
    /// Explain a command line of xperf, logman, tracelog or dotnet-trace
    Line(line::LineArgs),
    /// Print tables of keyword combinations, computed from the rules of the CLR
    #[command(after_help = "\
Examples:
  etlkit spec tables
  etlkit spec tables --level 4 --format json")]
    Tables {
        /// Level of the session; 0 means all levels
        #[arg(long, default_value_t = 5, value_parser = number::<u8>)]
        level: u8,
    },
}

/// What a subcommand prints, as text and as JSON.
pub(crate) struct Printed {
    pub text: String,
    pub json: Value,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let profile = args.event_tables;
    let printed = match &args.what {
        What::Providers { search } => list::providers(profile, &Search::new(search))?,
        What::Keywords { provider, search } => {
            list::keywords(find(profile, provider)?, &Search::new(search))?
        }
        What::Events { provider, search } => {
            list::events(find(profile, provider)?, &Search::new(search))?
        }
        What::Mask {
            provider,
            mask,
            level,
        } => mask::mask(profile, provider, *mask, *level)?,
        What::Line(args) => line::run(args)?,
        What::Tables { level } => tables::tables(profile, *level),
    };
    print(args.format, &printed)
}

/// The output of a list of rows.
pub(crate) fn rows(rows: impl IntoIterator<Item = Printed>) -> Printed {
    let mut text = String::new();
    let mut json = Vec::new();
    for row in rows {
        text.push_str(&row.text);
        json.push(row.json);
    }
    Printed {
        text,
        json: json.into(),
    }
}

/// Prints in the chosen format.
pub(crate) fn print(format: ReportFormat, printed: &Printed) -> Result<Outcome, Failure> {
    match format {
        ReportFormat::Text => output::print(&printed.text)?,
        ReportFormat::Json => output::print(&output::json(&printed.json))?,
    }
    Ok(Outcome::Success)
}

/// A text to search, in lower case; `None` selects everything.
struct Search(Option<String>);

impl Search {
    fn new(text: &Option<String>) -> Self {
        Search(text.as_deref().map(str::to_ascii_lowercase))
    }

    fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Whether a text is found in a name, case-insensitively.
    fn is_in(&self, name: &str) -> bool {
        match &self.0 {
            Some(text) => name.to_ascii_lowercase().contains(text),
            None => true,
        }
    }

    /// The failure that nothing matches.
    fn no_match(&self, message: &str) -> Failure {
        Failure::new(self.text().unwrap_or_default(), message)
            .hint("omit the search text to list all")
    }
}

/// A provider of the tables, a class of kernel events, or a provider that Windows ships.
fn find(profile: TableSet, name: &str) -> Result<&'static Provider, Failure> {
    let guid = providers::find(name);
    let mut classes = Registry::classic().providers();
    let class = classes.find(|p| p.name.eq_ignore_ascii_case(name) || Some(p.guid) == guid);
    class
        .or_else(|| etl_schema::tables::provider(profile, guid?))
        .ok_or_else(|| {
            let message = match guid.and_then(providers::name) {
                Some(name) => format!("the tables have only the name of this provider ({name})"),
                None => format!("unknown provider{}", nearest(&nearest_providers(name))),
            };
            Failure::new(name, message)
                .hint("`etlkit spec providers` lists the providers in the tables")
        })
}

/// Why a class of kernel events has no keywords.
fn without_keywords(provider: &Provider) -> Option<&'static str> {
    if Registry::classic().has(provider.guid) {
        Some("a class of kernel events has no keywords: it is enabled by kernel flags")
    } else {
        None
    }
}
