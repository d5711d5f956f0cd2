//! The sessions whose headers the files have.

use etl_analysis::Machine;
use etl_analysis::files::Session;

use super::{ENDED, duration};
use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// A row of `sessions`.
#[derive(Clone, Debug)]
pub struct SessionRow<'m> {
    machine: &'m Machine,
    file: &'m str,
    session: &'m Session,
}

impl Row for SessionRow<'_> {
    const NAME: &'static str = "sessions";
    const ROW: &'static str = "One session whose header a file has";
    const ABOUT: &'static str = "A merged trace has the headers of several sessions.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const SESSION: Column = Column::new("session", Kind::Word, "Name of the session").or_null();
        const STARTED: Column = Column::time("started", "When it started");
        const DURATION: Column = Column::micros("duration_us", "How long it lasted").or_null();
        columns.add(SESSION.heading("session"), |row| {
            Cell::text(&row.session.name)
        });
        columns.add(
            Column::new("file", Kind::Word, "The file").heading("file"),
            |row| Cell::text(row.file),
        );
        columns.add(STARTED.heading("start"), |row| {
            Cell::time(row.machine.clock(), Some(row.session.from))
        });
        columns.add(ENDED, |row| Cell::time(row.machine.clock(), row.session.to));
        columns.add(DURATION.heading("ms"), |row| Cell::micros(row.duration()));
        columns.add(
            Column::count("events_lost", "Events that the header counts as lost")
                .heading("lost events"),
            |row| Cell::int(Some(row.session.events_lost)),
        );
        columns.add(
            Column::count("buffers_lost", "Buffers that the header counts as lost")
                .heading("lost buffers"),
            |row| Cell::int(Some(row.session.buffers_lost)),
        );
    }
}

impl SessionRow<'_> {
    /// How long it lasted, in 100 ns; `None` if it was not closed.
    fn duration(&self) -> Option<u64> {
        let to = self.session.to?;
        Some(duration(self.machine.clock(), self.session.from, to))
    }
}

/// A row for each session of a recording.
pub fn sessions(machine: &Machine) -> impl Iterator<Item = SessionRow<'_>> {
    machine.files().iter().flat_map(move |file| {
        let sessions = file.sessions.iter();
        sessions.map(move |session| SessionRow {
            machine,
            file: &file.name,
            session,
        })
    })
}
