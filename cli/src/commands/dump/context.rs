//! The schemas, processes, threads, volumes and code of whole traces, read before their events are
//! printed.

use etl_analysis::Machine;
use etl_events::context::{self, Code, Context};
use etl_events::schemas::SchemasOfTraces;
use etl_schema::store::SchemaStore;

use super::printer::Session;
use crate::input::Input;

/// The contents of one or several traces of a machine, read before rows are printed.
pub(super) struct Before {
    machine: Machine,
    /// `None` if rows are printed in the order of the file: as from a pipe, with the schemas before
    /// each row.
    schemas: Option<SchemasOfTraces>,
    /// Whether rows have the names of processes and threads.
    names: bool,
}

impl Before {
    /// Reads the traces. Returns `None` if no row needs their contents, and if they take too much
    /// memory or cannot be read: then rows have no names.
    pub fn read<'i>(
        inputs: impl IntoIterator<Item = &'i mut Input>,
        session: &Session<'_>,
    ) -> Option<Self> {
        let args = session.args;
        let selects = !args.grep.is_empty() || !args.conditions.is_empty();
        let shows = !args.count && session.rows.borrow().shows_context();
        let names = !args.no_names && (shows || selects || args.filter.has_subjects());
        let by_schema = selects || !args.event.is_empty() || !args.filter.providers().is_empty();
        if !names && (args.file_order || args.count && !by_schema) {
            return None;
        }
        let mut limits = None;
        let mut traces = Vec::new();
        for input in inputs {
            limits = Some(input.limits());
            let name = input.about().name.clone();
            traces.push((input.source(), name));
        }
        let mut schemas = SchemasOfTraces::new(session.store.clone());
        let threads = args.threads.count();
        let code = if args.resolve { Code::Read } else { Code::Skip };
        let machine = context::machine(traces, limits?, threads, code, &mut schemas).ok()?;
        Some(Before {
            machine,
            schemas: (!args.file_order).then_some(schemas),
            names,
        })
    }

    /// The machine, if rows have its names.
    pub fn machine(&self) -> Option<&Machine> {
        self.names.then_some(&self.machine)
    }

    /// Whether the records of all traces are in order.
    pub fn is_ordered(&self) -> bool {
        self.machine.is_ordered()
    }

    /// All schemas of one of the traces.
    pub fn schemas(&self, file: usize) -> Option<SchemaStore> {
        Some(self.schemas.as_ref()?.store(file))
    }
}

/// The names for rows of one of the traces of a machine.
pub(super) fn context<'m>(
    machine: Option<&'m Machine>,
    file: usize,
    session: &'m Session<'_>,
) -> Option<Context<'m>> {
    let mut context = Context::new(machine?).file(file);
    if session.args.raw_paths {
        context = context.raw_paths();
    }
    if session.args.resolve {
        context = context.resolve_addresses();
    }
    Some(context.functions(session.symbols.functions()))
}
