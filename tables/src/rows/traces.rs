//! The traces themselves.

use etl_analysis::Machine;
use etl_format::{FileHeader, FileTime};

use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// What a row of `traces` says of the file, which its content does not say.
///
/// ```
/// use etl_tables::rows::traces::AboutFile;
///
/// let about = AboutFile {
///     path: "traces/orders.etl".to_owned(),
///     ..AboutFile::default()
/// };
/// assert_eq!(about.size_bytes, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AboutFile {
    /// Its path, as it was named; empty if it is not known.
    pub path: String,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// The SHA-256 of its bytes, as hexadecimal digits; empty if it is not known.
    pub sha256: String,
}

/// A row of `traces`.
#[derive(Clone, Debug)]
pub struct TraceRow<'m> {
    machine: &'m Machine,
    about: &'m AboutFile,
    header: &'m FileHeader,
    session: String,
    log_file: String,
    os: String,
    clock: String,
}

impl Row for TraceRow<'_> {
    const NAME: &'static str = "traces";
    const ROW: &'static str = "One trace";
    const ABOUT: &'static str = "What the header of the file says, and when its events are.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const SESSION: Column = Column::new(
            "session",
            Kind::Word,
            "Name of the session that recorded it",
        );
        const BOOTED: Column = Column::time("booted", "When the computer was started");
        const PATH: Column = Column::new("path", Kind::Text, "Path of the file, as it was named");
        const LOG_FILE: Column = Column::new(
            "log_file",
            Kind::Text,
            "Path that the session wrote to, on the computer",
        );
        columns.add(PATH.or_null(), |row| Cell::text(&row.about.path));
        columns.add(
            Column::bytes("size_bytes", "Size of the file, unpacked").or_null(),
            |row| Cell::int(row.about.size_bytes),
        );
        columns.add(
            Column::new("sha256", Kind::Text, "SHA-256 of the file, unpacked").or_null(),
            |row| Cell::text(&row.about.sha256),
        );
        columns.add(SESSION.or_null(), |row| {
            Cell::text(row.session.trim_end_matches('\0'))
        });
        columns.add(LOG_FILE.or_null(), |row| {
            Cell::text(row.log_file.trim_end_matches('\0'))
        });
        columns.add(
            Column::count("events", "Events, as `info` counts them"),
            |row| Cell::int(Some(row.machine.records())),
        );
        columns.add(
            Column::time("first", "Time of the first event").or_null(),
            |row| {
                Cell::time(
                    row.machine.clock(),
                    row.machine.span().map(|span| span.first),
                )
            },
        );
        columns.add(
            Column::time("last", "Time of the last event").or_null(),
            |row| {
                Cell::time(
                    row.machine.clock(),
                    row.machine.span().map(|span| span.last),
                )
            },
        );
        columns.add(Column::time("started", "When the session started"), |row| {
            Cell::Time(row.machine.clock().start_time)
        });
        columns.add(
            Column::new("os", Kind::Word, "Version of Windows: `10.0`"),
            |row| Cell::Text(&row.os),
        );
        columns.add(
            Column::new("build", Kind::Int32, "Build of Windows"),
            |row| Cell::int(Some(row.header.build)),
        );
        columns.add(
            Column::new("processors", Kind::Int32, "Processors of the computer"),
            |row| Cell::int(Some(row.header.processors)),
        );
        columns.add(
            Column::new("pointer_bytes", Kind::Int32, "Width of its pointers").unit("bytes"),
            |row| Cell::int(Some(row.header.pointer_size.bytes())),
        );
        columns.add(BOOTED.or_null(), |row| {
            if row.header.boot_time > FileTime::new(0) {
                Cell::Time(row.header.boot_time)
            } else {
                Cell::Null
            }
        });
        columns.add(
            Column::new(
                "utc_offset_minutes",
                Kind::Int32,
                "Minutes that the computer's standard time is ahead of UTC",
            )
            .unit("minutes"),
            |row| Cell::int(Some(row.header.time_zone.bias.saturating_neg())),
        );
        columns.add(
            Column::new("clock", Kind::Word, "Clock of the timestamps"),
            |row| Cell::Text(&row.clock),
        );
        columns.add(
            Column::count("clock_hz", "Its ticks in a second").unit("Hz"),
            |row| Cell::bits(Some(row.machine.clock().frequency)),
        );
        columns.add(
            Column::count("buffers", "Buffers that the header counts"),
            |row| Cell::int(Some(row.header.buffers_written)),
        );
        columns.add(
            Column::count("events_lost", "Events that the header counts as lost"),
            |row| Cell::int(Some(row.header.events_lost)),
        );
        columns.add(
            Column::count("buffers_lost", "Buffers that the header counts as lost"),
            |row| Cell::int(Some(row.header.buffers_lost)),
        );
    }
}

/// A row for each file of a recording.
pub fn traces<'m>(
    machine: &'m Machine,
    about: &'m AboutFile,
) -> impl Iterator<Item = TraceRow<'m>> {
    machine.files().iter().map(move |file| TraceRow {
        machine,
        about,
        log_file: String::from_utf16_lossy(&file.header.log_file_name),
        header: &file.header,
        session: String::from_utf16_lossy(&file.header.logger_name),
        os: format!("{}.{}", file.header.os_major, file.header.os_minor),
        clock: machine.clock().kind.to_string(),
    })
}
