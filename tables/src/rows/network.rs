//! Connections of TCP, and datagrams of UDP between two endpoints.

use std::cmp::Reverse;

use etl_analysis::Machine;
use etl_analysis::behavior::network::{Network, Traffic};

use super::{OfProcess, add_process, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `connections`.
#[derive(Clone, Debug)]
pub struct ConnectionRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    protocol: &'static str,
    local: String,
    remote: String,
    remote_name: &'m str,
    traffic: &'m Traffic,
}

impl OfProcess for ConnectionRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ConnectionRow<'_> {
    const NAME: &'static str = "connections";
    const ROW: &'static str =
        "One connection of TCP, or the datagrams of UDP between two endpoints, by their bytes";
    const ABOUT: &'static str = "`analyze network` prints the same rows.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const PROTOCOL: Column = Column::new("protocol", Kind::Word, "`tcp` or `udp`");
        const LOCAL: Column = Column::new("local", Kind::Text, "Local address and port");
        const REMOTE: Column = Column::new("remote", Kind::Text, "Remote address and port");
        const REMOTE_NAME: Column = Column::new(
            "remote_name",
            Kind::Text,
            "Name of the remote address, if the DNS client looked it up",
        );
        const SENT: Column = Column::bytes("sent_bytes", "Bytes that were sent");
        const RECEIVED: Column = Column::bytes("received_bytes", "Bytes that were received");
        add_process(columns);
        columns.add(PROTOCOL.heading("protocol"), |row| Cell::Text(row.protocol));
        columns.add(LOCAL.heading("local"), |row| Cell::Text(&row.local));
        columns.add(REMOTE.heading("remote"), |row| Cell::Text(&row.remote));
        columns.add(REMOTE_NAME.or_null().heading("remote name"), |row| {
            Cell::text(row.remote_name)
        });
        columns.add(Column::count("sends", "Sends").heading("sends"), |row| {
            Cell::int(Some(row.traffic.sends))
        });
        columns.add(SENT.heading("sent"), |row| {
            Cell::int(Some(row.traffic.sent))
        });
        columns.add(
            Column::count("receives", "Receives").heading("receives"),
            |row| Cell::int(Some(row.traffic.receives)),
        );
        columns.add(RECEIVED.heading("received"), |row| {
            Cell::int(Some(row.traffic.received))
        });
        columns.add(Column::count("connects", "Connects"), |row| {
            Cell::int(Some(row.traffic.connects))
        });
        columns.add(Column::count("accepts", "Accepted connections"), |row| {
            Cell::int(Some(row.traffic.accepts))
        });
        columns.add(Column::count("disconnects", "Disconnects"), |row| {
            Cell::int(Some(row.traffic.disconnects))
        });
        columns.add(
            Column::count("retransmits", "Retransmits").heading("retransmits"),
            |row| Cell::int(Some(row.traffic.retransmits)),
        );
        columns.add(
            Column::time("first", "Time of the first event").heading("first"),
            |row| Cell::time(row.machine.clock(), Some(row.traffic.first)),
        );
        columns.add(
            Column::time("last", "Time of the last event").heading("last"),
            |row| Cell::time(row.machine.clock(), Some(row.traffic.last)),
        );
    }
}

/// A row for each connection of the selected processes, the most bytes first.
#[must_use]
pub fn connections<'m>(
    machine: &'m Machine,
    network: &'m Network,
    selection: &Selection,
) -> Vec<ConnectionRow<'m>> {
    let mut rows = Vec::new();
    for (connection, traffic) in network.connections() {
        let process = machine.process_at(connection.pid, traffic.first);
        if !selection.has_process(process) {
            continue;
        }
        let process = match process {
            Some(_) => process_label(machine, process),
            None => Label::Process {
                name: "",
                pid: Some(connection.pid),
            },
        };
        rows.push(ConnectionRow {
            machine,
            process,
            protocol: if connection.is_udp { "udp" } else { "tcp" },
            local: connection.local.to_string(),
            remote: connection.remote.to_string(),
            remote_name: network.name_of(connection.remote.ip()).unwrap_or_default(),
            traffic,
        });
    }
    rows.sort_by_key(|row| Reverse(row.traffic.sent.saturating_add(row.traffic.received)));
    rows
}
