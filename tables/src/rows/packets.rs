//! Packets.

use etl_export::pcapng::Packet;
use etl_format::{FileTime, ProcessId, ThreadId};

use super::{FILETIME, PID, TID, TIME};
use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// A row of `packets`.
#[derive(Clone, Copy, Debug)]
pub struct PacketRow<'m> {
    pub(crate) time: FileTime,
    pub(crate) pid: Option<ProcessId>,
    pub(crate) tid: Option<ThreadId>,
    pub(crate) provider: &'m str,
    pub(crate) packet: &'m Packet,
}

impl Row for PacketRow<'_> {
    const NAME: &'static str = "packets";
    const ROW: &'static str = "One packet at one place of capture";
    const ABOUT: &'static str = "`export pcapng --all-layers` writes the same packets: Windows logs a \
        packet at each layer that it passes.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const PROVIDER: Column = Column::new("provider", Kind::Word, "Provider that logged it");
        const PLACE: Column = Column::new(
            "place",
            Kind::Word,
            "Where it was captured, with the name of the interface in pcapng",
        );
        const LINK: Column = Column::new("link", Kind::Word, "`ethernet`, `wifi` or `ip`");
        const SENT: Column = Column::new(
            "is_sent",
            Kind::Bool,
            "Whether the machine sent it; null if the event does not say",
        );
        const REASON: Column =
            Column::count("drop_reason", "Why it was dropped; null if it was not");
        columns.add(TIME, |row| Cell::Time(row.time));
        columns.add(FILETIME, |row| Cell::Int(row.time.get()));
        columns.add(PID, |row| Cell::int(row.pid));
        columns.add(TID, |row| Cell::int(row.tid));
        columns.add(PROVIDER, |row| Cell::Text(row.provider));
        columns.add(PLACE, |row| Cell::Text(&row.packet.place));
        columns.add(LINK, |row| Cell::Text(row.packet.link));
        columns.add(SENT.or_null(), |row| {
            row.packet.is_sent.map_or(Cell::Null, Cell::Bool)
        });
        columns.add(
            Column::bytes("length_bytes", "Length on the network"),
            |row| Cell::int(Some(row.packet.length)),
        );
        columns.add(REASON.or_null(), |row| {
            Cell::bits(row.packet.dropped.map(|dropped| dropped.reason))
        });
        columns.add(Column::new("data", Kind::Bytes, "Captured bytes"), |row| {
            Cell::Bytes(&row.packet.bytes)
        });
    }
}
