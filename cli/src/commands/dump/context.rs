//! What a whole trace says of its processes, threads, volumes and code, read before its events are
//! printed.

use etl_tools::context::{self, Context, Machine};

use super::printer::Session;
use crate::input::Input;
use crate::symbols::Functions;

/// Reads it, of several traces together. `None` where no row shows any of it or none is wanted, and
/// where it takes too much memory or cannot be read: then rows go without.
pub(super) fn machine<'i>(
    inputs: impl IntoIterator<Item = &'i mut Input>,
    session: &Session<'_>,
) -> Option<Machine> {
    let args = session.args;
    let selects = args.grep.is_some() || !args.conditions.is_empty() || args.filter.has_subjects();
    let shows = !args.count && session.frame.borrow().shows_context();
    if args.no_names || !shows && !selects {
        return None;
    }
    let mut limits = None;
    let traces = inputs.into_iter().map(|input| {
        limits = Some(input.limits());
        let name = input.about().name.clone();
        (input.source(), name)
    });
    let traces: Vec<_> = traces.collect();
    context::machine(traces, limits?, args.threads.count(), args.resolve).ok()
}

/// The names for rows of one of the traces of a machine.
pub(super) fn context<'m>(
    machine: Option<&'m Machine>,
    functions: Option<&'m Functions<'m>>,
    file: usize,
    session: &Session<'_>,
) -> Option<Context<'m>> {
    let (args, context) = (session.args, Context::new(machine?).file(file));
    let functions = functions.map(|functions| functions as _);
    Some(context.raw_paths(args.raw_paths).symbols(args.resolve).functions(functions))
}
