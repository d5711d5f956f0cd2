//! Tables whose rows are in the machine: they need no records.

use super::rows::Rows;
use super::select::selection;
use crate::options::Options;
use crate::recorded::Before;
use crate::rows::{code, images, losses, processes, sessions, threads, traces};

/// Adds the rows of the requested tables.
pub(super) fn write(before: &Before, options: &Options, rows: &mut Rows<'_>) {
    let machine = &before.machine;
    let selection = selection(options, machine);
    rows.add_all(traces::traces(machine, &options.about));
    rows.add_all(sessions::sessions(machine));
    if rows.wants::<processes::ProcessRow<'_>>() {
        rows.add_all(processes::processes(machine, &selection));
    }
    rows.add_all(threads::threads(machine, &selection));
    rows.add_all(images::images(machine, &selection));
    if rows.wants::<code::ModuleRow<'_>>() {
        rows.add_all(code::modules(machine, &selection));
    }
    if rows.wants::<code::MethodRow<'_>>() {
        code::for_each_method(machine, &selection, |row| rows.add(&row));
    }
    rows.add_all(losses::losses(machine));
}
