//! Packets, and parts of packets, in events.

use etl_events::Event;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::Record;
use etl_schema::decode::Value;
use etl_schema::providers::{NDIS_PACKET_CAPTURE, PKTMON, RAS_PACKET_CAPTURE};

use super::radio::Radio;
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

/// Where a packet was captured: what becomes an interface.
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
    /// A component of the network stack, by the packet monitor.
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

/// An event with a packet or a part of one.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub place: Place,
    /// Whether a packet begins and ends here.
    pub begins: bool,
    pub ends: bool,
    /// Whether the machine sent it; `None` where the event does not say.
    pub is_sent: Option<bool>,
    pub bytes: &'a [u8],
    /// Bytes of the packet as it was on the network, where the event says.
    pub length: Option<u32>,
    /// Group and number of the packet: the same at every component.
    pub number: Option<(u64, u64)>,
    /// Reason and place in the driver's code, of a dropped packet.
    pub dropped: Option<(u64, u64)>,
    /// Name of the reason, where the schema of the event has one.
    pub reason: Option<String>,
    /// The VLAN tag that Windows took out of it.
    pub vlan: Option<u16>,
    /// Names of the port and of its card.
    pub names: [String; 2],
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
            let place = Place::RemoteAccess {
                domain: text(event, "RoutingDomainID"),
                user: text(event, "RRASUserName"),
            };
            let part = Part::new(place, bytes(event, "Fragment")?);
            Some(Part {
                is_sent: Some(id == id::RAS_SENT),
                ..part
            })
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
            begins: true,
            ends: true,
            is_sent: None,
            bytes,
            length: None,
            number: None,
            dropped: None,
            reason: None,
            vlan: None,
            names: <[String; 2]>::default(),
        }
    }

    /// With what the keywords of NDIS-PacketCapture say.
    fn with_keywords(self, keyword: u64) -> Self {
        let has = |bit| keyword & bit != 0;
        let is_sent = match (has(keyword::SEND), has(keyword::RECEIVE)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        Part {
            begins: has(keyword::START),
            ends: has(keyword::END),
            is_sent,
            ..self
        }
    }
}

/// A packet of a layer above a network card.
fn layer_part<'a>(event: &Event<'a>, keyword: u64) -> Option<Part<'a>> {
    let (mut card, mut layer, mut fragment) = (None, None, None);
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
    let (card, layer) = (card? as u32, layer? as u32);
    let link = match keyword {
        k if k & keyword::WIFI != 0 => Link::Wifi,
        k if k & keyword::MOBILE_BROADBAND != 0 => Link::Raw,
        _ => Link::Ethernet,
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
    let SwitchPacket {
        card, layer, port, ..
    } = packet;
    let names = packet.names.map(utf16);
    let part = Part::new(Place::Port { card, layer, port }, packet.bytes);
    Some(
        Part {
            vlan: packet.vlan,
            names,
            ..part
        }
        .with_keywords(keyword),
    )
}

/// A packet of a component of the network stack.
fn component_part<'a>(event: &Event<'a>, event_id: u16) -> Option<Part<'a>> {
    let mut numbers = [None; COMPONENT_FIELDS.len()];
    let (mut payload, mut reason_name) = (None, None);
    for (field, value) in event.fields()? {
        if let Value::Binary(bytes) = value {
            payload = (&*field.name == "Payload").then_some(bytes).or(payload);
        } else if let Some(at) = COMPONENT_FIELDS
            .iter()
            .position(|name| *name == &*field.name)
            && let Some(number) = numbers.get_mut(at)
        {
            *number = value.as_u64();
            if &*field.name == DROP_REASON {
                let map = field.map.as_deref();
                reason_name = map.zip(*number).and_then(|(map, reason)| map.get(reason));
            }
        }
    }
    let [
        kind,
        id,
        direction_tag,
        length,
        group,
        number,
        reason,
        location,
    ] = numbers;
    let link = match kind {
        Some(1) => Link::Ethernet,
        Some(2) => Link::Wifi,
        Some(3) => Link::Raw,
        _ => return None,
    };
    let part = Part::new(
        Place::Component {
            id: id? as u16,
            link,
        },
        payload?,
    );
    Some(Part {
        is_sent: direction_tag.and_then(direction),
        length: length.map(|length| length as u32),
        number: group.zip(number),
        dropped: reason.zip(location).filter(|_| event_id == id::DROPPED),
        reason: reason_name.map(str::to_owned),
        ..part
    })
}

/// The field whose numbers have names.
const DROP_REASON: &str = "DropReason";

/// Fields with numbers of the packets of a component.
const COMPONENT_FIELDS: [&str; 8] = [
    "PacketType",
    "ComponentId",
    "DirTag",
    "OriginalPayloadSize",
    "PktGroupId",
    "PktNumber",
    DROP_REASON,
    "DropLocation",
];

/// Whether a direction of the packet monitor is away from the machine: in and out, receive and
/// transmit, ingress and egress.
fn direction(tag: u64) -> Option<bool> {
    match tag {
        1 | 3 | 5 => Some(false),
        2 | 4 | 6 => Some(true),
        _ => None,
    }
}

/// What the packet monitor says of a component.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Name(String, String),
    Ipv4([u8; 4]),
    Ipv6([u8; 16]),
    Mac([u8; 6]),
}

/// The fact about a component of the packet monitor in an event.
pub(super) fn fact_of(event: &Event<'_>) -> Option<(u16, Fact)> {
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
        COMPONENT => Fact::Name(text(event, "Name"), text(event, "Description")),
        IPV4 => Fact::Ipv4(ipv4(event, "IpAddress")?),
        IPV6 => Fact::Ipv6(ipv6(event, "IpAddress")?),
        ADDRESS if number(event, "Type") == Some(HARDWARE) => {
            Fact::Mac(bytes(event, "Value")?.try_into().ok()?)
        }
        _ => return None,
    };
    let component = if id == COMPONENT { "Id" } else { "ComponentId" };
    Some((number(event, component)? as u16, fact))
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
        // As it is in memory.
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
