//! Edits of finished files: of single records, whose buffers are then written again, and of
//! headers, in place. The whole file is in memory.

use std::io::{self, Read};

use etl_format::read::{Options, Order, Trace};
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;
use etl_schema::store::SchemaStore;

use super::Problem;
use super::buffers::Buffers;
use super::patch;
use super::record::{EditableRecord, Schemas};
use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::model::{
    Edit, EditPlan, FieldValue, NamedValue, RecordAction, RecordEdit, RecordSelector,
    ScriptLocation, Side,
};
use crate::time::Nanos;

/// Makes the changes of a plan to its file at the end of the simulation. `schemas` describe the
/// events of the scenario's own providers.
pub(crate) fn edit(
    plan: &EditPlan,
    schemas: &[EventSchema],
    files: &mut dyn FileSystem,
    at: Nanos,
) -> Result<()> {
    let mut bytes = match read(&plan.file, files) {
        Ok(bytes) => bytes,
        Err(error) => return Err(file_error(plan, &error, at)),
    };
    let mut current = None;
    let edits = plan
        .edits
        .iter()
        .inspect(|step| current = step.location.as_ref());
    if let Err(problem) = edit_bytes(&mut bytes, edits.map(|step| &step.edit), schemas) {
        let location = current.or(plan.location.as_ref());
        return Err(cannot_edit(plan, &problem.to_string(), location, at));
    }
    files
        .truncate(&plan.file, 0)
        .and_then(|()| files.overwrite(&plan.file, 0, &bytes))
        .map_err(|error| file_error(plan, &error, at))
}

fn read(name: &str, files: &mut dyn FileSystem) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    files.open(name)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn file_error(plan: &EditPlan, error: &io::Error, at: Nanos) -> Error {
    let problem = if error.kind() == io::ErrorKind::NotFound {
        "no such file".to_owned()
    } else {
        error.to_string()
    };
    cannot_edit(plan, &problem, plan.location.as_ref(), at)
}

fn cannot_edit(
    plan: &EditPlan,
    problem: &str,
    location: Option<&ScriptLocation>,
    at: Nanos,
) -> Error {
    let what = format!("{} cannot be edited: {problem}", plan.file);
    Error::impossible(at, what).with_location(location)
}

fn edit_bytes<'a>(
    bytes: &mut Vec<u8>,
    edits: impl Iterator<Item = &'a Edit>,
    schemas: &[EventSchema],
) -> Result<(), Problem> {
    let mut records: Option<Records> = None;
    for edit in edits {
        if !matches!(edit, Edit::Records(_))
            && let Some(done) = records.take()
        {
            // The edits of records are written first.
            *bytes = done.write(bytes)?;
        }
        match edit {
            Edit::Records(edit) => {
                let all = match records.take() {
                    Some(all) => all,
                    None => Records::read(bytes, schemas)?,
                };
                records.insert(all).edit(edit)?;
            }
            Edit::Header { field, amount } => patch::header(bytes, *field, *amount)?,
            Edit::Buffer { nth, field, amount } => patch::buffer(bytes, *nth, *field, *amount)?,
            Edit::Damage(nth) => patch::damage(bytes, *nth)?,
        }
    }
    if let Some(done) = records {
        *bytes = done.write(bytes)?;
    }
    Ok(())
}

/// The records of a file after buffer 0, in time order.
struct Records {
    all: Vec<EditableRecord>,
    buffers: Buffers,
}

impl Records {
    fn read(bytes: &[u8], schemas: &[EventSchema]) -> Result<Self, Problem> {
        let mut trace = Trace::open(bytes, &Options::default())?;
        let buffers = Buffers::of(&trace)?;
        let mut store = SchemaStore::default().without_windows_tables();
        store.add_schemas(schemas.iter().cloned());
        let mut all = Vec::new();
        let mut shared = Schemas::new();
        let mut records = trace.records(Order::Time)?;
        while let Some(record) = records.next_record()? {
            // Buffer 0 stays as it is.
            if record.location().buffer_offset == 0 {
                continue;
            }
            store.learn(&record);
            all.push(EditableRecord::new(&record, &store, &mut shared));
        }
        Ok(Records { all, buffers })
    }

    fn write(self, bytes: &[u8]) -> Result<Vec<u8>, Problem> {
        self.buffers.write(bytes, &self.all)
    }

    /// Indexes of the selected records.
    fn places(&self, select: &RecordSelector) -> Result<Vec<usize>, Problem> {
        let mut wanted = None;
        if let Some(with) = &select.with {
            wanted = Some((with.name.as_str(), self.number(&with.value)?));
        }
        let mut indexes = Vec::new();
        for (at, record) in self.all.iter().enumerate() {
            if (select.event == "*" || record.name() == select.event)
                && select.provider.is_none_or(|p| record.provider() == Some(p))
                && select.pid.is_none_or(|pid| record.pid() == Some(pid.get()))
                && wanted.is_none_or(|(field, n)| record.field(field) == Some(n))
            {
                indexes.push(at);
            }
        }
        if let Some(nth) = select.nth {
            let at = if nth > 0 {
                usize::try_from(nth - 1).ok()
            } else {
                usize::try_from(nth.unsigned_abs())
                    .ok()
                    .and_then(|n| indexes.len().checked_sub(n))
            };
            let one = at.and_then(|at| indexes.get(at)).copied();
            if one.is_none() && !indexes.is_empty() {
                let event = &select.event;
                let all = indexes.len();
                return Err(format!("there is no {event} number {nth}; there are {all}").into());
            }
            indexes = one.into_iter().collect();
        }
        if indexes.is_empty() {
            let mut names: Vec<&str> = self.all.iter().map(EditableRecord::name).collect();
            names.sort_unstable();
            names.dedup();
            let names = names.join(", ");
            return Err(format!("there is no such {}; there are {names}", select.event).into());
        }
        Ok(indexes)
    }

    fn first(&self, select: &RecordSelector) -> Result<usize, Problem> {
        let places = self.places(select)?;
        Ok(places
            .first()
            .copied()
            .ok_or_else(|| format!("there is no {}", select.event))?)
    }

    /// A number, or the value of a field of another record.
    fn number(&self, given: &FieldValue) -> Result<u64, Problem> {
        match given {
            FieldValue::Number(n) => Ok(*n),
            FieldValue::Text(text) => Err(format!("{text:?} is not a number").into()),
            FieldValue::Of {
                record,
                field,
                plus,
            } => {
                let value = self.taken(record, field)?.as_u64();
                let value =
                    value.ok_or_else(|| format!("{field} of {} is not a number", record.event))?;
                Ok(value.wrapping_add(*plus))
            }
        }
    }

    /// The value of a field of another record.
    fn taken(&self, select: &RecordSelector, field: &str) -> Result<&OwnedValue, Problem> {
        let record = self.all.get(self.first(select)?);
        let value = record.and_then(|r| r.value(field));
        Ok(value.ok_or_else(|| format!("{} has no {field}", select.event))?)
    }

    /// The value for a field: a number, or text.
    fn new_value(&self, given: &FieldValue) -> Result<FieldValue, Problem> {
        let text = match given {
            FieldValue::Text(text) => text.clone(),
            FieldValue::Of {
                record,
                field,
                plus: 0,
            } => match self.taken(record, field)? {
                OwnedValue::Text(text) => text.clone(),
                _ => return self.number(given).map(FieldValue::Number),
            },
            _ => return self.number(given).map(FieldValue::Number),
        };
        Ok(FieldValue::Text(text))
    }

    fn edit(&mut self, edit: &RecordEdit) -> Result<(), Problem> {
        let places = self.places(&edit.select)?;
        // From the last one, so that the indexes of the others stay valid.
        for &at in places.iter().rev() {
            if let Some(record) = self.all.get(at) {
                self.buffers.touch(record.home);
            }
            match &edit.action {
                RecordAction::Delete => {
                    self.all.remove(at);
                }
                RecordAction::Copy(times, changes) => {
                    let copy = self.changed(at, changes)?;
                    let after = at.saturating_add(1);
                    let copies = core::iter::repeat_n(copy, usize::try_from(*times)?);
                    self.all.splice(after..after, copies);
                }
                RecordAction::Alter(changes) => {
                    let altered = self.changed(at, changes)?;
                    if let Some(record) = self.all.get_mut(at) {
                        *record = altered;
                    }
                }
                RecordAction::Move(target, side) => self.displace(at, target, *side)?,
                RecordAction::Swap => self.swap(at)?,
                RecordAction::Disorder => self.disorder(at)?,
            }
        }
        Ok(())
    }

    /// A record with changes, in the buffer where it belongs.
    fn changed(
        &mut self,
        at: usize,
        changes: &crate::model::Changes,
    ) -> Result<EditableRecord, Problem> {
        let record = self.all.get(at).ok_or("no such record")?;
        let mut fields = Vec::new();
        for field in &changes.fields {
            let value = self.new_value(&field.value)?;
            fields.push(NamedValue {
                name: field.name.clone(),
                value,
            });
        }
        let mut changed = record.changed(changes, &fields)?;
        if let Some(processor) = changes.processor.filter(|p| *p != changed.processor) {
            changed.processor = processor;
            changed.home = self.buffers.home(processor, changed.timestamp());
            self.buffers.touch(changed.home);
        }
        Ok(changed)
    }

    fn displace(&mut self, at: usize, target: &RecordSelector, side: Side) -> Result<(), Problem> {
        let places = self.places(target)?;
        let place = match side {
            Side::Before => places.first(),
            Side::After => places.last(),
        };
        let Some(&to) = place else {
            return Err(format!("there is no {}", target.event).into());
        };
        let Some(model) = self.all.get(to).cloned() else {
            return Err(format!("there is no {}", target.event).into());
        };
        let mut moved = self.all.remove(at);
        moved.take_time_of(&model);
        self.buffers.touch(moved.home);
        // Removing a record before it has moved it by one.
        let to = to.saturating_sub(usize::from(at < to));
        let to = to.saturating_add(usize::from(side == Side::After));
        self.all.insert(to.min(self.all.len()), moved);
        Ok(())
    }

    fn swap(&mut self, at: usize) -> Result<(), Problem> {
        let Some(one) = self.all.get(at).cloned() else {
            return Ok(());
        };
        let later = self.all.iter().enumerate().skip(at.saturating_add(1));
        let other = later
            .filter(|(_, r)| r.is_event() && r.tid() == one.tid())
            .map(|(i, _)| i);
        let Some(next) = other.into_iter().next() else {
            return Err(format!("{} is the last of its thread", one.name()).into());
        };
        let Some(other) = self.all.get(next).cloned() else {
            return Ok(());
        };
        self.buffers.touch(other.home);
        let mut early = other.clone();
        let mut late = one.clone();
        early.take_time_of(&one);
        late.take_time_of(&other);
        if let Some(place) = self.all.get_mut(at) {
            *place = early;
        }
        if let Some(place) = self.all.get_mut(next) {
            *place = late;
        }
        Ok(())
    }

    fn disorder(&mut self, at: usize) -> Result<(), Problem> {
        let Some(one) = self.all.get(at) else {
            return Ok(());
        };
        let earlier = self
            .all
            .iter()
            .take(at)
            .rposition(|r| r.processor == one.processor && r.timestamp() < one.timestamp());
        let Some(earlier) = earlier else {
            return Err(format!("no record before {} on its processor", one.name()).into());
        };
        let mut moved = self.all.remove(at);
        if let Some(place) = self.all.get(earlier) {
            moved.home = place.home;
            self.buffers.touch(moved.home);
        }
        self.all.insert(earlier, moved);
        Ok(())
    }
}
