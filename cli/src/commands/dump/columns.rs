//! A CSV column for each field, if `etlkit dump` selects one kind of event.

use std::path::PathBuf;

use etl_events::EventDecoder;
use etl_events::rows::Format;
use etl_events::schemas;
use etl_format::TimeRange;
use etl_format::read::{Mode, Options, Order};

use super::Args;
use super::printer::Session;
use crate::input::{self, Input};

/// Whether the arguments select a single kind of event.
fn select_one_kind(args: &Args) -> bool {
    let one_name = matches!(args.event.as_slice(), [name] if !name.contains(['*', '?']));
    let one_id = args.filter.providers().len() == 1 && args.filter.ids().len() == 1;
    one_name || one_id
}

/// Has a column for each field in the CSV of a single kind of event. Reads the traces first, except
/// a pipe, which cannot be read again.
pub(super) fn expand(session: &Session<'_>, paths: &[PathBuf]) {
    let args = session.args;
    let is_wanted = args.format == Format::Csv && args.columns.is_empty() && !args.count;
    if !is_wanted || !select_one_kind(args) {
        return;
    }
    let options = Options {
        mode: Mode::Salvage,
        ..Options::default()
    };
    for path in paths.iter().filter(|path| !input::is_stdin(path)) {
        // A trace that cannot be read is reported when it is printed.
        let Ok(mut input) = Input::open(path, &args.input) else {
            continue;
        };
        let Ok(processes) = args.filter.processes(&mut input) else {
            continue;
        };
        let Ok((mut trace, _)) = input.trace(&options) else {
            continue;
        };
        let clock = trace.clock();
        let Ok(mut records) = trace.records(Order::File) else {
            continue;
        };
        let Ok(store) = schemas::read(&mut records, session.store.clone()) else {
            continue;
        };
        drop(records);
        let Ok(mut filter) = args.filter.filter(&clock, &processes) else {
            continue;
        };
        if args.merge {
            // Seconds count from the start of the first trace.
            filter.time = TimeRange::default();
        }
        filter.learn_names(&store);
        let selection = session.selection(filter);
        let mut decoder = EventDecoder::new(clock, store);
        let Ok(mut records) = trace.records(Order::File) else {
            continue;
        };
        while let Ok(Some(record)) = records.next_record() {
            if let Some(event) = decoder.select(&record, &selection) {
                session.rows.borrow_mut().learn_columns(&event);
            }
        }
    }
}
