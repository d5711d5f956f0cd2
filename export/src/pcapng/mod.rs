//! Packets as a pcapng file, for Wireshark and other readers of captures.
//!
//! Packets are in the events of three providers: Microsoft-Windows-NDIS-PacketCapture
//! (`netsh trace start capture=yes`), Microsoft-Windows-PktMon (`pktmon start --capture`) and
//! Microsoft-Windows-Ras-NdisWanPacketCapture. A trace is read twice: [`Interfaces`] finds where
//! packets were captured, since the events that name the places often come last, and
//! [`PacketWriter`] writes the packets.
//!
//! Times are exact to 100 ns. Windows logs a packet at each layer that it passes; it is written
//! once unless [`PacketOptions::all_layers`] asks for all of them. If the packet monitor does not
//! number packets across components (Windows 11 24H2 and later), the packets at the edges of the
//! drivers of network cards are written ([`Interfaces::is_of_cards`]).

mod block;
mod components;
mod event;
mod framing;
mod packet;
mod radio;
mod reader;
mod reassembly;
mod seen;
mod vmswitch;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use etl_events::{Event, EventDecoder};
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::Record;

use block::{Block, kind, option};
use components::{Components, Layer};
use framing::{Framing, u16_be};
use packet::{ComponentFact, Edge, Fact, Link, Part, Place, PortNames, RADIOTAP, Reception};
use radio::Radio;
use reassembly::{Origin, Reassembly};
use seen::Seen;

pub use packet::DropPoint;
pub use reader::{Packet, Packets};

/// Which packets and events are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketOptions {
    all_layers: bool,
    events: bool,
}

impl PacketOptions {
    /// Each packet once, and no other events.
    #[must_use]
    pub fn new() -> Self {
        PacketOptions::default()
    }

    /// Writes a packet for each layer and component at which it was logged.
    #[must_use]
    pub fn all_layers(self) -> Self {
        PacketOptions {
            all_layers: true,
            ..self
        }
    }

    /// Also writes the events without packets, with link type ETW (290).
    #[must_use]
    pub fn events(self) -> Self {
        PacketOptions {
            events: true,
            ..self
        }
    }
}

/// The first pass: the places where packets were captured.
#[derive(Debug, Default)]
pub struct Interfaces {
    places: BTreeMap<Place, PortNames>,
    components: BTreeMap<u16, Component>,
    /// The edges of the components, and what their packets are.
    monitored: Components,
    /// Places of packets whose bytes do not tell their kind, by edge: what they are is known at the
    /// end.
    unclear: BTreeMap<Edge, Place>,
    /// Cards and layers whose events say how packets were received.
    radios: BTreeSet<(u32, u32)>,
}

/// What events say about a component of the network stack.
#[derive(Debug, Default)]
struct Component {
    name: String,
    description: String,
    ipv4: BTreeSet<[u8; 4]>,
    ipv6: BTreeSet<[u8; 16]>,
    mac: Option<[u8; 6]>,
}

impl Interfaces {
    /// No interfaces.
    #[must_use]
    pub fn new() -> Self {
        Interfaces::default()
    }

    /// Learns the schemas that a record defines, and adds the place of its packet.
    pub fn record(&mut self, decoder: &mut EventDecoder<'_>, record: &Record<'_>) {
        decoder.learn(record);
        if !packet::may_have_packet(record) {
            return;
        }
        let event = decoder.decode(record);
        if let Some(part) = packet::part_of(&event) {
            self.monitored.add(&part);
            match part.edge {
                Some(edge) if part.framing == Some(Framing::Unclear) => {
                    self.unclear.insert(edge, part.place);
                }
                _ => {
                    self.places.entry(part.place).or_insert(part.names);
                }
            }
        } else if let Some(reception) = packet::reception_of(&event) {
            self.radios.insert((reception.card, reception.layer));
        } else if let Some(ComponentFact {
            component: id,
            fact,
        }) = packet::fact_of(&event)
        {
            let component = self.components.entry(id).or_default();
            match fact {
                Fact::Name {
                    kind,
                    name,
                    description,
                } => {
                    self.monitored.add_type(id, kind.unwrap_or(0));
                    component.name = name;
                    component.description = description;
                }
                Fact::Ipv4(address) => drop(component.ipv4.insert(address)),
                Fact::Ipv6(address) => drop(component.ipv6.insert(address)),
                Fact::Mac(address) => component.mac = Some(address),
            }
        }
    }

    /// How many places there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all_places().len()
    }

    /// Whether no packet was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.unclear.is_empty()
    }

    /// Whether packets of the packet monitor are written as network cards logged them, because they
    /// have no number that all components share (Windows 11 24H2 and later).
    #[must_use]
    pub fn is_of_cards(&self) -> bool {
        self.monitored.layer().is_some()
    }

    /// Whether packets may be written several times, because they have no number that all
    /// components share, and no network card logged any.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        self.monitored.is_without_layer()
    }

    /// All places, with the places of packets whose kind the other packets of their edge tell.
    fn all_places(&self) -> BTreeMap<Place, PortNames> {
        let mut places = self.places.clone();
        for (edge, place) in &self.unclear {
            let place = self.monitored.unclear_place(*edge, place);
            places.entry(place).or_default();
        }
        places
    }

    /// Whether the packets of a place have a header that says how they were received.
    fn has_radio(&self, place: &Place) -> bool {
        matches!(place, Place::Layer { card, layer, link: Link::Wifi, .. }
            if self.radios.contains(&(*card, *layer)))
    }

    /// The places whose packets are written. One layer of each network card is enough: the card
    /// itself if it has packets, or the first layer.
    fn written(&self, options: PacketOptions) -> Vec<(Place, PortNames)> {
        let mut written = Vec::new();
        let mut last_card = None;
        let mut first_layer = 0;
        let layer_of_cards = self.monitored.layer().filter(|_| !options.all_layers);
        for (place, names) in self.all_places() {
            if let Some(layer) = &layer_of_cards
                && !layer.has_place(&place)
            {
                continue;
            }
            if let Place::Layer { card, layer, .. } = &place {
                // The layers of a card follow each other.
                if last_card != Some(*card) {
                    last_card = Some(*card);
                    first_layer = *layer;
                }
                if *layer != first_layer && !options.all_layers {
                    continue;
                }
            }
            written.push((place, names));
        }
        written
    }
}

/// Numbers of written items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Packets in the file.
    pub packets: u64,
    /// Events without packets.
    pub events: u64,
    /// Packets that other layers and components logged again; they are left out.
    pub repeated: u64,
    /// Packets with a missing part; they are left out.
    pub incomplete: u64,
}

/// The second pass: writes the packets.
#[derive(Debug)]
pub struct PacketWriter<W> {
    out: W,
    options: PacketOptions,
    /// The number of the interface of each place that is written.
    interfaces: BTreeMap<Place, u32>,
    /// By number of the interface, whether packets have a header that says how they were received.
    with_radio: Vec<bool>,
    monitored: Components,
    /// The edges whose packets are written, if packets have no number that components share.
    layer: Option<Layer>,
    /// How the next packet was received, by card, layer and processor.
    radios: BTreeMap<(u32, u32, u16), Radio>,
    /// The number of the interface of events.
    event_interface: u32,
    parts: Reassembly,
    seen: Seen,
    block: Block,
    text: Vec<u8>,
    comment: String,
    written: Written,
}

impl<W: Write> PacketWriter<W> {
    /// Writes the head of the file: the section and the interfaces.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(mut out: W, interfaces: &Interfaces, options: PacketOptions) -> io::Result<Self> {
        let mut block = Block::default();
        let application = concat!("etlkit ", env!("CARGO_PKG_VERSION"));
        // Byte order, version 1.0, and a section of unknown length.
        let section = block
            .begin(kind::SECTION_HEADER)
            .u32(0x1a2b_3c4d)
            .u16(1)
            .u16(0);
        section
            .u32(u32::MAX)
            .u32(u32::MAX)
            .text(option::SECTION_APPLICATION, application);
        block.write(&mut out)?;
        let mut numbers = BTreeMap::new();
        let mut with_radio = Vec::new();
        for (place, names) in interfaces.written(options) {
            let has_radio = interfaces.has_radio(&place);
            let link = if has_radio {
                RADIOTAP
            } else {
                place.link().code()
            };
            begin_interface(&mut block, link);
            describe(&mut block, &place, &names, &interfaces.components);
            block.write(&mut out)?;
            with_radio.push(has_radio);
            let number = numbers.len() as u32;
            numbers.insert(place, number);
        }
        if options.events {
            begin_interface(&mut block, event::LINK).text(option::INTERFACE_NAME, "etw");
            block.text(option::INTERFACE_DESCRIPTION, "Event Tracing for Windows");
            block.write(&mut out)?;
        }
        Ok(PacketWriter {
            out,
            options,
            event_interface: numbers.len() as u32,
            interfaces: numbers,
            with_radio,
            monitored: interfaces.monitored.clone(),
            layer: interfaces.monitored.layer(),
            radios: BTreeMap::new(),
            parts: Reassembly::default(),
            seen: Seen::default(),
            block,
            text: Vec::new(),
            comment: String::new(),
            written: Written::default(),
        })
    }

    /// Writes the packet or the event of a record. `decoder` has learned from all records of the
    /// trace in the first pass, and its clock says when the packet was captured.
    ///
    /// # Errors
    /// If writing fails.
    pub fn record(
        &mut self,
        decoder: &mut EventDecoder<'_>,
        record: &Record<'_>,
    ) -> io::Result<()> {
        let may_have_packet = packet::may_have_packet(record);
        if !may_have_packet && !self.options.events {
            return Ok(());
        }
        let event = decoder.decode(record);
        if may_have_packet {
            if let Some(mut part) = packet::part_of(&event) {
                part.place = self.monitored.place_of(&part);
                return self.part(&part, &event);
            }
            if let Some(Reception { card, layer, radio }) = packet::reception_of(&event) {
                self.radios.insert((card, layer, record.processor()), radio);
            }
        }
        if !self.options.events {
            return Ok(());
        }
        self.written.events += 1;
        self.text.clear();
        event::put(&mut self.text, &event);
        let len = self.text.len() as u32;
        let time = unix_time(&event);
        self.block
            .begin(kind::ENHANCED_PACKET)
            .u32(self.event_interface);
        self.block
            .u32((time >> 32) as u32)
            .u32(time as u32)
            .u32(len)
            .u32(len)
            .bytes(&self.text);
        self.block.write(&mut self.out)
    }

    fn part(&mut self, part: &Part<'_>, event: &Event<'_>) -> io::Result<()> {
        let record = event.record();
        let is_new = self.is_new(part);
        let Some(&interface) = self.interfaces.get(&part.place).filter(|_| is_new) else {
            self.written.repeated += u64::from(part.fragment.is_last);
            return Ok(());
        };
        let origin = Origin::new(interface, record);
        let Some(packet) = self.parts.add(origin, part.fragment) else {
            return Ok(());
        };
        let time = unix_time(event);
        let RestoredPacket { mut bytes, length } = restore(part, packet);
        if self.with_radio.get(interface as usize) == Some(&true) {
            let mut with_header = Vec::with_capacity(bytes.len() + 16);
            Radio::header(self.radio_of(part, record), &mut with_header);
            with_header.extend_from_slice(&bytes);
            bytes = Cow::Owned(with_header);
        }
        let captured = bytes.len() as u32;
        self.block.begin(kind::ENHANCED_PACKET).u32(interface);
        self.block.u32((time >> 32) as u32).u32(time as u32);
        self.block
            .u32(captured)
            .u32(length.max(captured))
            .bytes(&bytes);
        self.options_of(part, event);
        self.written.packets += 1;
        self.block.write(&mut self.out)
    }

    /// Whether a packet is written that other layers and components may have logged, too.
    fn is_new(&mut self, part: &Part<'_>) -> bool {
        if self.options.all_layers || part.dropped.is_some() {
            return true;
        }
        match (&self.layer, part.number) {
            (Some(layer), Some(_)) => layer.contains(part),
            (None, Some(number)) => self.seen.is_new(number),
            (_, None) => true,
        }
    }

    /// How a packet was received, from the event before it.
    fn radio_of(&mut self, part: &Part<'_>, record: &Record<'_>) -> Option<Radio> {
        let Place::Layer { card, layer, .. } = part.place else {
            return None;
        };
        self.radios.remove(&(card, layer, record.processor()))
    }

    /// The options of a packet.
    fn options_of(&mut self, part: &Part<'_>, event: &Event<'_>) {
        self.comment.clear();
        if let (Some(pid), Some(tid)) = (event.pid(), event.tid()) {
            let _ = write!(self.comment, "PID={pid} TID={tid}");
        }
        if let Some(DropPoint { reason, location }) = part.dropped {
            let blank = if self.comment.is_empty() { "" } else { " " };
            let _ = match &part.reason {
                Some(name) => write!(self.comment, "{blank}dropped: {name} (reason {reason})"),
                None => write!(self.comment, "{blank}dropped: reason {reason}"),
            };
            let _ = write!(self.comment, ", location {location:#x}");
        }
        self.block.text(option::COMMENT, &self.comment);
        if let Some(is_sent) = part.is_sent {
            // 1 is inbound, 2 outbound.
            let flags = 1 + u32::from(is_sent);
            self.block
                .option(option::PACKET_FLAGS, &flags.to_le_bytes());
        }
        if let Some(number) = part.number {
            self.block
                .option(option::PACKET_ID, &number.group.to_le_bytes());
        }
        if part.dropped.is_some() {
            // A verdict of the hardware's driver, as a number of 64 bits.
            self.block
                .option(option::PACKET_VERDICT, &[2, 1, 0, 0, 0, 0, 0, 0, 0]);
        }
        let record = event.record();
        if let (Some(pid), Some(tid)) = (record.process_id(), record.thread_id()) {
            let both = u64::from(tid.get()) << 32 | u64::from(pid.get());
            self.block
                .option(option::PACKET_PROCESS, &both.to_le_bytes());
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<Written> {
        self.written.incomplete = self.parts.incomplete();
        self.out.flush()?;
        Ok(self.written)
    }
}

/// A packet as it was on the network.
struct RestoredPacket<'a> {
    bytes: Cow<'a, [u8]>,
    /// Length on the network; 0 if it is unknown.
    length: u32,
}

/// Restores a packet: puts its VLAN tag back, and clears the flag of Wi-Fi packets that says that
/// they are encrypted, since Windows logs them decrypted. The bytes of a packet that may be another
/// one are not changed.
fn restore<'a>(part: &Part<'_>, mut packet: Cow<'a, [u8]>) -> RestoredPacket<'a> {
    let link = part.place.link();
    if link == Link::Wifi
        && matches!(part.framing, None | Some(Framing::Wifi))
        && packet.get(1).is_some_and(|flags| flags & PROTECTED != 0)
        && let Some(flags) = packet.to_mut().get_mut(1)
    {
        *flags &= !PROTECTED;
    }
    let mut length = part
        .length
        .or_else(|| original_length(link, &packet))
        .unwrap_or(0);
    if let Some(tag) = part.vlan
        && let Some(tagged) = vmswitch::tagged(&packet, tag)
    {
        if length > 0 {
            length += (tagged.len() - packet.len()) as u32;
        }
        packet = Cow::Owned(tagged);
    }
    RestoredPacket {
        bytes: packet,
        length,
    }
}

/// The name of the interface of a place, without the name of a component.
fn place_name(place: &Place) -> String {
    match place {
        Place::Layer {
            card, layer, link, ..
        } => {
            let kind = match link {
                Link::Ethernet => "eth",
                Link::Wifi => "wifi",
                Link::Raw => "mbb",
            };
            format!("{kind}:{card}:{layer}")
        }
        Place::Port { card, layer, port } => format!("vswitch:{card}:{layer}:{port}"),
        Place::RemoteAccess { domain, user } => format!("ras:{domain}:{user}"),
        Place::Component { id, .. } => format!("pktmon:{id}"),
    }
}

/// The flag of Wi-Fi packets that are encrypted.
const PROTECTED: u8 = 0x40;

/// 100 ns since 1970.
fn unix_time(event: &Event<'_>) -> u64 {
    let time = event.time().get().saturating_sub(FILETIME_UNIX_EPOCH);
    u64::try_from(time).unwrap_or(0)
}

/// Begins the description of an interface whose times are in units of 10⁻⁷ s.
fn begin_interface(block: &mut Block, link: u16) -> &mut Block {
    const RESOLUTION: u8 = 7;
    block.begin(kind::INTERFACE).u16(link).u16(0).u32(0);
    block.option(option::INTERFACE_RESOLUTION, &[RESOLUTION])
}

/// Adds the name and the description of an interface, and the addresses of a component.
fn describe(
    block: &mut Block,
    place: &Place,
    names: &PortNames,
    components: &BTreeMap<u16, Component>,
) {
    let place_name = place_name(place);
    match place {
        Place::Layer {
            card,
            is_above,
            layer,
            ..
        } => {
            block.text(option::INTERFACE_NAME, &place_name);
            if *is_above {
                let about = format!("filter above interface {layer} of card {card}");
                block.text(option::INTERFACE_DESCRIPTION, &about);
            }
        }
        Place::Port { .. } => {
            block.text(option::INTERFACE_NAME, &place_name);
            let about = format!("{} {}", names.port, names.card);
            block.text(option::INTERFACE_DESCRIPTION, about.trim());
        }
        Place::RemoteAccess { .. } => {
            block.text(option::INTERFACE_NAME, &place_name);
        }
        Place::Component { id, .. } => {
            let unknown = Component::default();
            let component = components.get(id).unwrap_or(&unknown);
            let name = format!("{place_name} {}", component.name);
            block.text(option::INTERFACE_NAME, name.trim());
            block.text(option::INTERFACE_DESCRIPTION, &component.description);
            for address in &component.ipv4 {
                // No event states the mask.
                let with_mask = [*address, [0xff; 4]].concat();
                block.option(option::INTERFACE_IPV4, &with_mask);
            }
            for address in &component.ipv6 {
                let with_prefix = [&address[..], &[128]].concat();
                block.option(option::INTERFACE_IPV6, &with_prefix);
            }
            if let Some(mac) = &component.mac {
                block.option(option::INTERFACE_MAC, mac);
            }
        }
    }
}

/// The length of a packet on the network by its IP header: NDIS-PacketCapture cuts packets without
/// saying so.
fn original_length(link: Link, packet: &[u8]) -> Option<u32> {
    const ETHERNET: usize = 14;
    const IPV6: u32 = 40;
    let ip_header = match link {
        Link::Ethernet => ETHERNET,
        Link::Raw => 0,
        Link::Wifi => return None,
    };
    let version = match link {
        Link::Ethernet => match u16_be(packet, ETHERNET - 2)? {
            0x0800 => 4,
            0x86dd => 6,
            _ => return None,
        },
        _ => packet.first()? >> 4,
    };
    let length = match version {
        4 => u32::from(u16_be(packet, ip_header + 2)?),
        6 => u32::from(u16_be(packet, ip_header + 4)?) + IPV6,
        _ => return None,
    };
    Some(length + ip_header as u32)
}
