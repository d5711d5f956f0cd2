//! The arguments that name an earlier trace, and what is different in it.

use std::path::PathBuf;

use etl_analysis::ProcessSelector;
use etl_tables::comparison::Renames;

use crate::process_args::ProcessArgs;

/// The arguments about an earlier trace.
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Compare with this earlier trace
    #[arg(long, value_name = "BEFORE")]
    pub compare: Option<PathBuf>,
    /// With --compare, scale the earlier trace to the time of the later one
    #[arg(long, requires = "compare")]
    pub normalize: bool,
    /// With --compare, the program OLD of the earlier trace is NEW in the later one; may be
    /// repeated
    #[arg(long, value_name = "OLD=NEW", requires = "compare", value_parser = renamed)]
    renamed: Vec<Renamed>,
}

/// The names of a program in two traces.
#[derive(Clone, Debug)]
struct Renamed {
    old: String,
    new: String,
}

fn renamed(text: &str) -> Result<Renamed, String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok(Renamed {
            old: old.to_owned(),
            new: new.to_owned(),
        }),
        _ => Err("two names are expected: OLD=NEW".to_owned()),
    }
}

impl CompareArgs {
    /// The programs that have other names in the later trace.
    pub fn renames(&self) -> Renames {
        let mut renames = Renames::default();
        for Renamed { old, new } in &self.renamed {
            renames.add(old, new);
        }
        renames
    }

    /// The selection of processes in the earlier trace. Each name has to be in one of the traces.
    pub fn earlier_processes(&self, processes: &ProcessArgs) -> ProcessSelector {
        let old_names = self.renamed.iter().map(|renamed| renamed.old.as_str());
        processes.selector_with(old_names).with_any()
    }
}
