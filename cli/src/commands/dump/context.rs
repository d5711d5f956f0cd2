//! What a whole trace says of its processes, threads, volumes and code, read before its events are
//! printed.

use etl_tools::context::{self, Context, Machine};

use super::Args;
use super::printer::Session;
use crate::input::Input;

/// Reads it. `None` where no row shows any of it or none is wanted, and where it takes too much
/// memory or cannot be read: then rows go without.
pub(super) fn machine(input: &mut Input, session: &Session<'_>) -> Option<Machine> {
    let args = session.args;
    let selects = args.grep.is_some() || !args.conditions.is_empty() || args.filter.has_subjects();
    let shows = !args.count && session.frame.borrow().shows_context();
    if args.no_names || !shows && !selects {
        return None;
    }
    let (limits, name) = (input.limits(), input.about().name.clone());
    context::machine(input.source(), &name, limits, args.threads.count(), args.resolve).ok()
}

/// The names for rows.
pub(super) fn context<'m>(machine: Option<&'m Machine>, args: &Args) -> Option<Context<'m>> {
    Some(Context::new(machine?).raw_paths(args.raw_paths).symbols(args.resolve))
}
