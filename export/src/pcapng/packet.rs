//! Packets, and parts of packets, in events.

use etl_events::Event;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::Value;
use etl_schema::providers::{NDIS_PACKET_CAPTURE, PKTMON, RAS_PACKET_CAPTURE};

use super::framing::Framing;
use super::radio::Radio;
use super::reassembly::Fragment;
use super::vmswitch::SwitchPacket;
use crate::text::utf16;

/// Ids of events with packets.
mod id {
    pub const FRAGMENT: u16 = 1001;
    pub const METADATA: u16 = 1002;
    pub const SWITCH_FRAGMENT: u16 = 1003;
    pub const RAS_SENT: u16 = 5001;
    pub const RAS_RECEIVED: u16 = 5002;
    pub const PACKET: u16 = 160;
    pub const DROPPED: u16 = 170;
}

/// Keywords of NDIS-PacketCapture.
mod keyword {
    pub const MOBILE_BROADBAND: u64 = 0x200;
    pub const WIFI: u64 = 0x1_0000;
    pub const START: u64 = 0x4000_0000;
    pub const END: u64 = 0x8000_0000;
    pub const SEND: u64 = 0x1_0000_0000;
    pub const RECEIVE: u64 = 0x2_0000_0000;
}

/// Link types of pcapng.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Link {
    Ethernet,
    Wifi,
    /// IP packets.
    Raw,
}

impl Link {
    pub fn code(self) -> u16 {
        match self {
            Link::Ethernet => 1,
            Link::Raw => 101,
            Link::Wifi => 105,
        }
    }
}

/// The link type of Wi-Fi packets with a header that says how they were received.
pub(super) const RADIOTAP: u16 = 127;

/// Where a packet was captured. Each place becomes an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A layer of the driver stack of a network card, the card itself first.
    Layer {
        card: u32,
        is_above: bool,
        layer: u32,
        link: Link,
    },
    /// A port of a virtual switch.
    Port { card: u32, layer: u32, port: u32 },
    /// A component of the network stack, from the packet monitor.
    Component { id: u16, link: Link },
    /// A user of remote access, in a routing domain.
    RemoteAccess { domain: String, user: String },
}

impl Place {
    pub fn link(&self) -> Link {
        match self {
            Place::Layer { link, .. } | Place::Component { link, .. } => *link,
            Place::Port { .. } | Place::RemoteAccess { .. } => Link::Ethernet,
        }
    }
}

/// An edge of a component: where packets enter or leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub component: u16,
    pub edge: u16,
}

/// The packet, or part of a packet, in an event.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub place: Place,
    pub fragment: Fragment<'a>,
    /// Whether the machine sent it; `None` if the event does not say.
    pub is_sent: Option<bool>,
    /// Bytes of the packet on the network, if the event says.
    pub length: Option<u32>,
    /// The same at every component.
    pub number: Option<PacketNumber>,
    /// Where a component logged it.
    pub edge: Option<Edge>,
    /// How many times it was logged so far, if the event says.
    pub appearance: Option<u64>,
    /// What its bytes are, if it is labelled Wi-Fi by the packet monitor.
    pub framing: Option<Framing>,
    pub dropped: Option<DropPoint>,
    /// Name of the reason for dropping it, if the schema of the event has one.
    pub reason: Option<String>,
    /// The VLAN tag that Windows removed from it.
    pub vlan: Option<u16>,
    /// Of a port of a virtual switch.
    pub names: PortNames,
}

/// The number of a packet of the packet monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PacketNumber {
    pub group: u64,
    pub number: u64,
}

/// Why and where a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DropPoint {
    /// The reason, as a number (`DropReason`).
    pub reason: u64,
    /// The place in the driver's code, as a number (`DropLocation`).
    pub location: u64,
}

/// Names of a port of a virtual switch and of the card that it belongs to.
#[derive(Clone, Debug, Default)]
pub(super) struct PortNames {
    pub port: String,
    pub card: String,
}

/// Whether the provider of a record logs packets.
pub(super) fn may_have_packet(record: &Record<'_>) -> bool {
    const PROVIDERS: [Guid; 3] = [NDIS_PACKET_CAPTURE, PKTMON, RAS_PACKET_CAPTURE];
    record
        .provider()
        .is_some_and(|provider| PROVIDERS.contains(&provider))
}

/// The packet, or part of a packet, in an event.
pub(super) fn part_of<'a>(event: &Event<'a>) -> Option<Part<'a>> {
    let descriptor = event.record().descriptor()?;
    match (event.provider_guid()?, descriptor.id) {
        (NDIS_PACKET_CAPTURE, id::FRAGMENT) => layer_part(event, descriptor.keyword),
        (NDIS_PACKET_CAPTURE, id::SWITCH_FRAGMENT) => port_part(event.record(), descriptor.keyword),
        (PKTMON, id @ (id::PACKET | id::DROPPED)) => component_part(event, id),
        (RAS_PACKET_CAPTURE, id @ (id::RAS_SENT | id::RAS_RECEIVED)) => {
            let mut part = remote_access_part(event)?;
            part.is_sent = Some(id == id::RAS_SENT);
            Some(part)
        }
        _ => None,
    }
}

/// How the next packet of a layer was received.
pub(super) struct Reception {
    pub card: u32,
    pub layer: u32,
    pub radio: Radio,
}

/// How the next packet of a layer was received, if the event says that.
pub(super) fn reception_of(event: &Event<'_>) -> Option<Reception> {
    let id = event.record().descriptor()?.id;
    if event.provider_guid()? != NDIS_PACKET_CAPTURE || id != id::METADATA {
        return None;
    }
    Some(Reception {
        card: number(event, "MiniportIfIndex")? as u32,
        layer: number(event, "LowerIfIndex")? as u32,
        radio: Radio::of(bytes(event, "Metadata")?)?,
    })
}

impl<'a> Part<'a> {
    /// A whole packet; nothing else is known.
    fn new(place: Place, bytes: &'a [u8]) -> Self {
        Part {
            place,
            fragment: Fragment::whole(bytes),
            is_sent: None,
            length: None,
            number: None,
            edge: None,
            appearance: None,
            framing: None,
            dropped: None,
            reason: None,
            vlan: None,
            names: PortNames::default(),
        }
    }

    /// Sets the fields that the keywords of NDIS-PacketCapture state.
    fn with_keywords(mut self, keyword: u64) -> Self {
        self.fragment.is_first = keyword & keyword::START != 0;
        self.fragment.is_last = keyword & keyword::END != 0;
        self.is_sent = match keyword & (keyword::SEND | keyword::RECEIVE) {
            keyword::SEND => Some(true),
            keyword::RECEIVE => Some(false),
            _ => None,
        };
        self
    }
}

/// A packet of a layer above a network card.
fn layer_part<'a>(event: &Event<'a>, keyword: u64) -> Option<Part<'a>> {
    let mut card = None;
    let mut layer = None;
    let mut fragment = None;
    for (field, value) in event.fields()? {
        match (&*field.name, value) {
            ("MiniportIfIndex", value) => card = value.as_u64(),
            ("LowerIfIndex", value) => layer = value.as_u64(),
            ("Fragment", Value::Binary(bytes)) => {
                fragment = Some(bytes);
                break;
            }
            _ => {}
        }
    }
    let card = card? as u32;
    let layer = layer? as u32;
    let link = if keyword & keyword::WIFI != 0 {
        Link::Wifi
    } else if keyword & keyword::MOBILE_BROADBAND != 0 {
        Link::Raw
    } else {
        Link::Ethernet
    };
    let place = Place::Layer {
        card,
        is_above: card != layer,
        layer,
        link,
    };
    Some(Part::new(place, fragment?).with_keywords(keyword))
}

/// A packet of a port of a virtual switch.
fn port_part<'a>(record: &Record<'a>, keyword: u64) -> Option<Part<'a>> {
    let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
    let packet = SwitchPacket::of(record.payload(), pointers)?;
    let place = Place::Port {
        card: packet.card,
        layer: packet.layer,
        port: packet.port,
    };
    let mut part = Part::new(place, packet.bytes).with_keywords(keyword);
    part.vlan = packet.vlan;
    part.names = PortNames {
        port: utf16(packet.port_name),
        card: utf16(packet.card_name),
    };
    Some(part)
}

/// A packet of a user of remote access.
fn remote_access_part<'a>(event: &Event<'a>) -> Option<Part<'a>> {
    let place = Place::RemoteAccess {
        domain: text(event, "RoutingDomainID"),
        user: text(event, "RRASUserName"),
    };
    Some(Part::new(place, bytes(event, "Fragment")?))
}

/// A packet of a component of the network stack.
fn component_part<'a>(event: &Event<'a>, event_id: u16) -> Option<Part<'a>> {
    let fields = ComponentFields::read(event)?;
    let payload = fields.payload?;
    let mut framing = None;
    let link = match fields.packet_type? {
        1 => Link::Ethernet,
        2 => {
            let found = Framing::of(payload);
            framing = Some(found);
            match found {
                Framing::Ethernet => Link::Ethernet,
                Framing::Wifi | Framing::Unclear => Link::Wifi,
            }
        }
        3 => Link::Raw,
        _ => return None,
    };
    let component = fields.component? as u16;
    let place = Place::Component {
        id: component,
        link,
    };
    let mut part = Part::new(place, payload);
    part.framing = framing;
    part.appearance = fields.appearance;
    part.edge = Some(Edge {
        component,
        edge: fields.edge.unwrap_or(0) as u16,
    });
    part.is_sent = fields.direction.and_then(is_sent);
    part.length = fields.original_size.map(|length| length as u32);
    if let (Some(group), Some(number)) = (fields.group, fields.number) {
        part.number = Some(PacketNumber { group, number });
    }
    if event_id == id::DROPPED
        && let (Some(reason), Some(location)) = (fields.reason, fields.location)
    {
        part.dropped = Some(DropPoint { reason, location });
    }
    part.reason = fields.reason_name;
    Some(part)
}

/// The fields of an event with a packet of a component.
#[derive(Default)]
struct ComponentFields<'a> {
    packet_type: Option<u64>,
    component: Option<u64>,
    edge: Option<u64>,
    appearance: Option<u64>,
    direction: Option<u64>,
    original_size: Option<u64>,
    group: Option<u64>,
    number: Option<u64>,
    reason: Option<u64>,
    reason_name: Option<String>,
    location: Option<u64>,
    payload: Option<&'a [u8]>,
}

impl<'a> ComponentFields<'a> {
    /// Reads the fields in one pass over the event.
    fn read(event: &Event<'a>) -> Option<Self> {
        let mut fields = ComponentFields::default();
        for (field, value) in event.fields()? {
            let number = value.as_u64();
            match (&*field.name, value) {
                ("Payload", Value::Binary(bytes)) => fields.payload = Some(bytes),
                (_, Value::Binary(_)) => {}
                ("PacketType", _) => fields.packet_type = number,
                ("ComponentId", _) => fields.component = number,
                ("EdgeId", _) => fields.edge = number,
                ("AppearanceCount", _) => fields.appearance = number,
                ("DirTag", _) => fields.direction = number,
                ("OriginalPayloadSize", _) => fields.original_size = number,
                ("PktGroupId", _) => fields.group = number,
                ("PktNumber", _) => fields.number = number,
                ("DropReason", _) => {
                    fields.reason = number;
                    if let (Some(map), Some(reason)) = (&field.map, number) {
                        fields.reason_name = map.get(reason).map(str::to_owned);
                    }
                }
                ("DropLocation", _) => fields.location = number,
                _ => {}
            }
        }
        Some(fields)
    }
}

/// Whether a packet with this direction (`DirTag`) leaves the machine. The directions are in and
/// out, receive and transmit, ingress and egress.
fn is_sent(direction: u64) -> Option<bool> {
    match direction {
        1 | 3 | 5 => Some(false),
        2 | 4 | 6 => Some(true),
        _ => None,
    }
}

/// What an event of the packet monitor says about a component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ComponentFact {
    /// The id of the component.
    pub component: u16,
    pub fact: Fact,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Name {
        kind: Option<u64>,
        name: String,
        description: String,
    },
    Ipv4([u8; 4]),
    Ipv6([u8; 16]),
    Mac([u8; 6]),
}

/// The fact about a component of the packet monitor in an event.
pub(super) fn fact_of(event: &Event<'_>) -> Option<ComponentFact> {
    const COMPONENT: u16 = 20;
    const IPV4: u16 = 65;
    const IPV6: u16 = 66;
    const ADDRESS: u16 = 70;
    /// The type of a hardware address among other bytes.
    const HARDWARE: u64 = 6;
    if event.provider_guid()? != PKTMON {
        return None;
    }
    let id = event.record().descriptor()?.id;
    let fact = match id {
        COMPONENT => Fact::Name {
            kind: number(event, "Type"),
            name: text(event, "Name"),
            description: text(event, "Description"),
        },
        IPV4 => Fact::Ipv4(ipv4(event, "IpAddress")?),
        IPV6 => Fact::Ipv6(ipv6(event, "IpAddress")?),
        ADDRESS if number(event, "Type") == Some(HARDWARE) => {
            Fact::Mac(bytes(event, "Value")?.try_into().ok()?)
        }
        _ => return None,
    };
    let id_field = if id == COMPONENT { "Id" } else { "ComponentId" };
    Some(ComponentFact {
        component: number(event, id_field)? as u16,
        fact,
    })
}

fn number(event: &Event<'_>, name: &str) -> Option<u64> {
    event.get(name)?.as_u64()
}

fn bytes<'a>(event: &Event<'a>, name: &str) -> Option<&'a [u8]> {
    match event.get(name)? {
        Value::Binary(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(event: &Event<'_>, name: &str) -> String {
    match event.get(name) {
        Some(Value::Utf16(text)) => text.to_string(),
        _ => String::new(),
    }
}

fn ipv4(event: &Event<'_>, name: &str) -> Option<[u8; 4]> {
    match event.get(name)? {
        Value::Ipv4(address) => Some(address.octets()),
        // The bytes of the address in memory.
        Value::UInt(number) => Some((number as u32).to_le_bytes()),
        _ => None,
    }
}

fn ipv6(event: &Event<'_>, name: &str) -> Option<[u8; 16]> {
    match event.get(name)? {
        Value::Ipv6(address) => Some(address.octets()),
        Value::Binary(bytes) => bytes.try_into().ok(),
        _ => None,
    }
}
