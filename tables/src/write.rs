//! Makes the tables of one trace.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etl_format::read::Source;

use crate::recorded::{Needs, Recorded};
use crate::schema::schema_of;
use crate::tables::{EVENTS, Table};
use crate::typed::{TypedTable, TypedTables};
use crate::{Error, Result, events, facts, typed};

/// A table with its requested columns.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Events(SchemaRef),
    Facts(&'static Table, SchemaRef),
    Typed(TypedTables, SchemaRef),
}

impl Plan {
    pub fn schema(&self) -> SchemaRef {
        match self {
            Plan::Events(schema) | Plan::Facts(_, schema) | Plan::Typed(_, schema) => {
                schema.clone()
            }
        }
    }
}

impl<S: Source> Recorded<S> {
    /// The table of this name, with its requested columns.
    pub fn plan(&mut self, name: &str) -> Result<Plan> {
        if name == EVENTS.name {
            return Ok(Plan::Events(
                events::builder(&self.options)?.schema().clone(),
            ));
        }
        if let Some(table) = Table::named(name) {
            let slots = table.slots();
            let requested = self.options.requested(table.name, &slots)?;
            let schema = schema_of(requested.iter().filter_map(|&index| slots.get(index)));
            return Ok(Plan::Facts(table, schema));
        }
        if !name.contains('.') {
            return Err(Error::NoTable(name.to_owned()));
        }
        let mut tables = self.typed()?;
        tables.retain(|other, _| other.eq_ignore_ascii_case(name));
        let Some(table) = tables.values().next() else {
            return Err(Error::NoEvent(name.to_owned()));
        };
        let requested = self.options.requested_or_all(&table.name, &table.slots)?;
        let schema = schema_of(requested.iter().filter_map(|&index| table.slots.get(index)));
        Ok(Plan::Typed(tables, schema))
    }

    /// The tables of all kinds of events that are selected.
    pub fn typed(&mut self) -> Result<TypedTables> {
        self.for_events(Needs::ALL, |records, context, options| {
            typed::tables_of(records, context, options)
        })
    }

    /// Passes the batches of a table to `out`.
    pub fn write(
        &mut self,
        plan: &Plan,
        out: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        match plan {
            Plan::Events(_) => self.write_events(out),
            Plan::Facts(table, _) => self.write_facts(&[table], &mut |_, batch| out(batch)),
            Plan::Typed(tables, _) => self.write_typed(tables, &mut |_, batch| out(batch)),
        }
    }

    /// Passes the batches of `events` to `out`.
    pub fn write_events(&mut self, out: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let builder = events::builder(&self.options)?;
        let needs = Needs {
            names: events::needs_names(&builder, &self.options),
            schemas: events::needs_schemas(&builder, &self.options),
        };
        self.for_events(needs, |records, context, options| {
            events::write(records, context, options, out)
        })
    }

    /// Passes the batches of the tables of events of one kind to `out`.
    pub fn write_typed(
        &mut self,
        tables: &TypedTables,
        out: &mut dyn FnMut(&TypedTable, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        self.for_events(Needs::ALL, |records, context, options| {
            typed::write(records, context, tables, options, out)
        })
    }

    /// Passes the batches of tables about the machine to `out`.
    pub fn write_facts(
        &mut self,
        tables: &[&'static Table],
        out: &mut dyn FnMut(&'static Table, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        facts::write(self, tables, out)
    }
}
