//! One pass over the events of the files, in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use etl_analysis::files::Timeline;
use etl_format::Ticks;
use etl_format::read::{Damage, Mode, Note, OrderCheck, Records};

use super::files::{Files, MachineData, Naming};
use super::query::Query;
use crate::Result;
use crate::context::Context;
use crate::decoder::EventDecoder;
use crate::event::Event;
use crate::input::AnySource;
use crate::selection::Selection;

/// One pass over the events of the files, in time order.
#[derive(Debug)]
pub(super) struct Pass<'t> {
    files: Vec<FilePass<'t>>,
    timeline: &'t Timeline,
    /// The times of the current events of the files.
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// Files that read on before the next event is returned.
    unread: Vec<usize>,
    damage: &'t mut Vec<Damage>,
    notes: &'t mut Vec<Note>,
}

/// A pass that was begun.
#[derive(Debug)]
pub(super) struct Started<'t> {
    pub pass: Pass<'t>,
    /// The selected names of providers that neither the tables nor any file defines.
    pub unknown_providers: Vec<String>,
}

/// A file whose current event was not returned yet. Of events of the same time, the event of the
/// first file comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    time: Ticks,
    file: usize,
}

/// The events of one file.
#[derive(Debug)]
struct FilePass<'t> {
    records: Records<AnySource<'t>>,
    decoder: EventDecoder<'t>,
    selection: Selection,
}

impl FilePass<'_> {
    /// Reads to the next selected record; returns its timestamp, and `None` at the end.
    fn advance(&mut self) -> Result<Option<Ticks>> {
        while let Some(record) = self.records.next_record()? {
            self.decoder.learn(&record);
            if self.decoder.admits(&record, &self.selection) {
                return Ok(Some(record.timestamp()));
            }
        }
        Ok(None)
    }

    /// The event of the current record.
    fn current(&mut self) -> Option<Event<'_>> {
        let record = self.records.current_record()?;
        Some(self.decoder.decode(&record))
    }
}

impl<'t> Pass<'t> {
    /// Begins to read the events that are asked for.
    pub fn start(files: &'t mut Files, query: &Query) -> Result<Started<'t>> {
        let processes = query.find_processes(files)?;
        let naming = query.naming.unwrap_or(files.settings.names);
        files.prepare(naming);
        let Files {
            files,
            settings,
            timeline,
            machines,
            damage,
            notes,
            ..
        } = files;
        let start = timeline.clock().start_time;
        let has_several = files.len() > 1;
        let mut unknown_providers = UnknownProviders::default();
        let mut passes = Vec::new();
        for (index, (file, lives)) in files.iter_mut().zip(processes).enumerate() {
            let clock = if has_several {
                timeline.clock_of(index)
            } else {
                file.clock
            };
            let machine = machines.get(file.machine).and_then(Option::as_ref);
            let store = match machine {
                Some(data) => data.schemas.store(file.index_on_machine),
                None => settings.store.clone(),
            };
            let mut filter = query.filter(&clock, lives);
            unknown_providers.add(filter.learn_names(&store));
            let mut selection = Selection::default()
                .filter(filter)
                .conditions(query.conditions.clone());
            if query.stale {
                selection = selection.with_stale_records();
            }
            let name = if has_several {
                Some(file.name.as_str())
            } else {
                None
            };
            let decoder = EventDecoder::new(clock, store)
                .file(name)
                .start(if has_several { start } else { clock.start_time })
                .context(context(machine, file.index_on_machine, naming, query));
            let options = settings.options(order_check(settings.mode, machine));
            let records = file.records(&options)?;
            passes.push(FilePass {
                records,
                decoder,
                selection,
            });
        }
        let pass = Pass {
            unread: (0..passes.len()).collect(),
            files: passes,
            timeline,
            waiting: BinaryHeap::new(),
            damage,
            notes,
        };
        let unknown_providers = unknown_providers.names.unwrap_or_default();
        Ok(Started {
            pass,
            unknown_providers,
        })
    }

    /// The next event, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Event<'_>>> {
        while let Some(index) = self.unread.pop() {
            let Some(file) = self.files.get_mut(index) else {
                continue;
            };
            if let Some(timestamp) = file.advance()? {
                let time = self.timeline.timestamp(index, timestamp);
                self.waiting.push(Reverse(Waiting { time, file: index }));
            }
        }
        let Some(Reverse(next)) = self.waiting.pop() else {
            self.finish();
            return Ok(None);
        };
        self.unread.push(next.file);
        let Some(file) = self.files.get_mut(next.file) else {
            return Ok(None);
        };
        Ok(file.current())
    }

    /// Keeps what was found in the files.
    fn finish(&mut self) {
        self.damage.clear();
        self.notes.clear();
        for file in &self.files {
            self.damage.extend(file.records.damage().iter().cloned());
            self.notes.extend(file.records.notes().iter().cloned());
        }
    }
}

/// The names of providers that no file defines so far.
#[derive(Debug, Default)]
struct UnknownProviders {
    names: Option<Vec<String>>,
}

impl UnknownProviders {
    /// Adds the names that one file does not define.
    fn add(&mut self, names: Vec<String>) {
        match &mut self.names {
            Some(unknown) => unknown.retain(|name| names.contains(name)),
            None => self.names = Some(names),
        }
    }
}

/// The names for the events of a file.
fn context<'t>(
    machine: Option<&'t MachineData>,
    file: usize,
    naming: Naming,
    query: &Query,
) -> Option<Context<'t>> {
    if naming == Naming::None {
        return None;
    }
    let mut context = Context::new(&machine?.machine).file(file);
    if query.raw_paths {
        context = context.raw_paths();
    }
    if naming == Naming::Addresses {
        context = context.resolve_addresses();
    }
    Some(context)
}

/// A file that was read before need not be scanned again if its records are in order.
fn order_check(mode: Mode, machine: Option<&MachineData>) -> OrderCheck {
    match machine {
        Some(data) if mode == Mode::Salvage && data.machine.is_ordered() => OrderCheck::Lookahead,
        _ => OrderCheck::Scan,
    }
}
