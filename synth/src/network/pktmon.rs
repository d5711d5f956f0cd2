//! Microsoft-Windows-PktMon: the packet monitor of Windows 10 and later. It logs a packet at each
//! edge of the components of the network stack that the packet passes, and lists the components
//! with their counters when a capture ends.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::PKTMON;

use super::BETWEEN_LAYERS;
use super::card::{Card, FIRST_INDEX};
use super::schemas::Driver;
use crate::error::Result;
use crate::etw::{Etw, Origin};
use crate::model::{MachinePlan, Packet, PacketMedium};
use crate::time::Nanos;

/// Ids of events.
mod id {
    pub const COMPONENT: u16 = 20;
    pub const NUMBER: u16 = 30;
    pub const GUID: u16 = 40;
    pub const MEDIUM: u16 = 60;
    pub const IPV4: u16 = 65;
    pub const IPV6: u16 = 66;
    pub const BYTES: u16 = 70;
    pub const ETHER_TYPE: u16 = 75;
    pub const DROPS: u16 = 80;
    pub const FLOWS: u16 = 90;
    pub const PACKET: u16 = 160;
    pub const ALL: [u16; 11] = [
        COMPONENT, NUMBER, GUID, MEDIUM, IPV4, IPV6, BYTES, ETHER_TYPE, DROPS, FLOWS, PACKET,
    ];
}

/// Types of properties.
mod property {
    pub const IF_INDEX: u64 = 1;
    pub const MINIPORT_IF_INDEX: u64 = 2;
    pub const IF_GUID: u64 = 4;
    pub const MEDIUM: u64 = 5;
    pub const ADDRESS: u64 = 6;
    pub const ETHER_TYPE: u64 = 7;
    pub const NDIS_OBJECT: u64 = 9;
    pub const IP_ADDRESS: u64 = 13;
}

/// Directions: received and sent.
const RX: u64 = 3;
const TX: u64 = 4;
/// The first build with the packet monitor.
const FIRST_BUILD: u32 = 17_763;
/// The first build that gives each appearance of a packet a group of its own, and counts none
/// (Windows 11 24H2).
const FIRST_BUILD_WITHOUT_COUNT: u32 = 26_100;

/// A component of the network stack, from below.
#[derive(Clone, Copy, Debug)]
struct Component {
    id: u16,
    kind: u16,
    driver: &'static str,
    description: &'static str,
    /// Its edges from below: id and name.
    edges: &'static [(u16, &'static str)],
}

const MINIPORT: u16 = 59;
const FILTER: u16 = 60;
const TCPIP: u16 = 65;

const COMPONENTS: [Component; 3] = [
    Component {
        id: MINIPORT,
        kind: 2,
        driver: "netvsc.sys",
        description: "",
        edges: &[(1, "Upper")],
    },
    Component {
        id: FILTER,
        kind: 3,
        driver: "wfplwfs.sys",
        description: "WFP Native MAC Layer LightWeight Filter",
        edges: &[(2, "Lower"), (1, "Upper")],
    },
    Component {
        id: TCPIP,
        kind: 4,
        driver: "tcpip.sys",
        description: "TCPIP",
        edges: &[(1, "Lower")],
    },
];

/// An event of the list of components.
struct Line {
    id: u16,
    values: Vec<(&'static str, OwnedValue)>,
}

/// A property of a component.
struct Property {
    /// The id of its event.
    id: u16,
    kind: u64,
    /// The field that contains the value.
    field: &'static str,
    value: OwnedValue,
}

impl Property {
    fn new(id: u16, kind: u64, value: OwnedValue) -> Self {
        let field = "Value";
        Self {
            id,
            kind,
            field,
            value,
        }
    }

    fn field(mut self, name: &'static str) -> Self {
        self.field = name;
        self
    }
}

/// What passed an edge in a direction.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

/// What passed an edge.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    received: Count,
    sent: Count,
}

/// The driver and its counters.
#[derive(Debug)]
pub(super) struct PacketMonitor {
    driver: Driver,
    exists: bool,
    /// Whether all appearances of a packet have its number.
    counts: bool,
    /// Bytes of a packet that are logged at most.
    logged: usize,
    /// Groups of packets so far.
    groups: u64,
    flows: BTreeMap<(u16, u16), Flow>,
    if_guid: Guid,
}

impl PacketMonitor {
    pub fn new(machine: &MachinePlan, card: &Card) -> Self {
        let [a, b, c, d, e, f] = card.mac;
        PacketMonitor {
            driver: Driver::new(PKTMON, &id::ALL, machine.os.build),
            exists: machine.os.build >= FIRST_BUILD,
            counts: machine.os.build < FIRST_BUILD_WITHOUT_COUNT,
            logged: machine.packet_bytes.map_or(usize::MAX, usize::from),
            groups: 0,
            flows: BTreeMap::new(),
            // Windows draws it when the card is installed.
            if_guid: Guid::new(0x39a7_378f, 0xe177, 0x403e, [0xb4, 0x7e, a, b, c, d, e, f]),
        }
    }

    /// Logs a packet at each edge that it passes, with the time of the last event in `origin`.
    pub fn log(&mut self, etw: &mut Etw<'_>, packet: &Packet, origin: &mut Origin) -> Result<()> {
        if !self.exists {
            return Ok(());
        }
        self.groups += 1;
        let mut edges: Vec<(u16, u16)> = COMPONENTS
            .iter()
            .flat_map(|c| c.edges.iter().map(|(edge, _)| (c.id, *edge)))
            .collect();
        if packet.sent {
            edges.reverse();
        }
        let kind: u64 = match packet.medium {
            PacketMedium::Ethernet => 1,
            PacketMedium::Wifi => 2,
            PacketMedium::Raw => 3,
        };
        let logged = packet.bytes.get(..self.logged).unwrap_or(&packet.bytes);
        let direction = if packet.sent { TX } else { RX };
        for (mut appearance, (component, edge)) in (1u64..).zip(edges) {
            if !self.counts {
                self.groups += 1;
                appearance = 0;
            }
            let flow = self.flows.entry((component, edge)).or_default();
            let count = if packet.sent {
                &mut flow.sent
            } else {
                &mut flow.received
            };
            count.packets += 1;
            count.bytes += u64::from(packet.length);
            let number = OwnedValue::UInt;
            let values = [
                ("PktGroupId", number(self.groups)),
                ("PktNumber", number(1)),
                ("AppearanceCount", number(appearance)),
                ("DirTag", number(direction)),
                ("PacketType", number(kind)),
                ("ComponentId", number(component.into())),
                ("EdgeId", number(edge.into())),
                (
                    "OriginalPayloadSize",
                    number(packet.length.min(0xffff).into()),
                ),
                ("Payload", OwnedValue::Binary(logged.to_vec())),
            ];
            self.driver.log(etw, origin, id::PACKET, 0, &values)?;
            origin.at += BETWEEN_LAYERS;
        }
        Ok(())
    }

    /// Lists the components, from above, with their properties and counters.
    pub fn log_components(&self, etw: &mut Etw<'_>, card: &Card, origin: &Origin) -> Result<Nanos> {
        let mut origin = *origin;
        if !self.exists {
            return Ok(origin.at);
        }
        for component in COMPONENTS.iter().rev() {
            for line in self.lines(component, card) {
                self.driver.log(etw, &origin, line.id, 0, &line.values)?;
                origin.at += BETWEEN_LAYERS;
            }
        }
        Ok(origin.at)
    }

    /// The events that list a component, with its properties and counters.
    fn lines(&self, component: &Component, card: &Card) -> Vec<Line> {
        let number = OwnedValue::UInt;
        let description = if component.description.is_empty() {
            &card.name
        } else {
            component.description
        };
        let mut lines = vec![Line {
            id: id::COMPONENT,
            values: vec![
                ("Id", number(component.id.into())),
                ("Type", number(component.kind.into())),
                ("Name", OwnedValue::from(component.driver)),
                ("Description", OwnedValue::Text(description.to_string())),
            ],
        }];
        for property in self.properties(component, card) {
            lines.push(Line {
                id: property.id,
                values: vec![
                    ("ComponentId", number(component.id.into())),
                    ("Type", number(property.kind)),
                    (property.field, property.value),
                ],
            });
        }
        lines.push(Line {
            id: id::DROPS,
            values: vec![
                ("ComponentId", number(component.id.into())),
                ("DirTagIn", number(RX)),
                ("DirTagOut", number(TX)),
            ],
        });
        for (edge, name) in component.edges {
            let flow = self.flows.get(&(component.id, *edge));
            let flow = flow.copied().unwrap_or_default();
            lines.push(Line {
                id: id::FLOWS,
                values: vec![
                    ("ComponentId", number(component.id.into())),
                    ("EdgeName", OwnedValue::from(*name)),
                    ("EdgeId", number((*edge).into())),
                    ("PacketsIn", number(flow.received.packets)),
                    ("BytesIn", number(flow.received.bytes)),
                    ("PacketsOut", number(flow.sent.packets)),
                    ("BytesOut", number(flow.sent.bytes)),
                    ("DirTagIn", number(RX)),
                    ("DirTagOut", number(TX)),
                ],
            });
        }
        lines
    }

    fn properties(&self, component: &Component, card: &Card) -> Vec<Property> {
        let number = OwnedValue::UInt;
        let own_index = u64::from(FIRST_INDEX);
        let mut properties = match component.id {
            MINIPORT => vec![
                Property::new(
                    id::BYTES,
                    property::ADDRESS,
                    OwnedValue::Binary(card.mac.to_vec()),
                ),
                Property::new(id::MEDIUM, property::MEDIUM, number(0)),
                Property::new(id::GUID, property::IF_GUID, OwnedValue::Guid(self.if_guid)),
                Property::new(id::NUMBER, property::IF_INDEX, number(own_index)),
            ],
            FILTER => vec![
                Property::new(id::NUMBER, property::MINIPORT_IF_INDEX, number(own_index)),
                Property::new(id::NUMBER, property::IF_INDEX, number(own_index + 11)),
            ],
            _ => {
                let (ipv4, ipv6) = card.addresses();
                // The table describes only the IPv6 address as an address.
                let ipv4 = number(u32::from_le_bytes(ipv4.octets()).into());
                let ipv6 = OwnedValue::Ipv6(ipv6);
                let mut properties = vec![
                    Property::new(id::IPV4, property::IP_ADDRESS, ipv4).field("IpAddress"),
                    Property::new(id::IPV6, property::IP_ADDRESS, ipv6).field("IpAddress"),
                ];
                for ether_type in [0x0806, 0x0800, 0x86dd] {
                    let value = number(ether_type);
                    let property = Property::new(id::ETHER_TYPE, property::ETHER_TYPE, value);
                    properties.push(property.field("EtherType"));
                }
                let index = number(own_index);
                let property = Property::new(id::NUMBER, property::MINIPORT_IF_INDEX, index);
                properties.push(property);
                properties
            }
        };
        let object = Property::new(id::NUMBER, property::NDIS_OBJECT, number(1));
        properties.push(object);
        properties
    }
}
