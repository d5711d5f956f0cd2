//! Packets as a pcapng file, for Wireshark and other readers of captures.
//!
//! Packets are in the events of three providers: Microsoft-Windows-NDIS-PacketCapture
//! (`netsh trace start capture=yes`), Microsoft-Windows-PktMon (`pktmon start --capture`) and
//! Microsoft-Windows-Ras-NdisWanPacketCapture. A trace is read twice: [`Interfaces`] finds where
//! packets were captured, since what names the places often comes last, and [`PacketWriter`] writes
//! the packets.
//!
//! Times are exact to 100 ns. Windows logs a packet at each layer that it passes; it is written
//! once unless [`PacketOptions::all_layers`] asks for all of them.

mod block;
mod event;
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
use etl_format::ThreadId;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::read::Record;

use block::{Block, kind, option};
use packet::{Fact, Link, Part, Place, RADIOTAP, Reception};
use radio::Radio;
use reassembly::Reassembly;
use seen::Seen;

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

    /// Whether a packet is written for each layer and component at which it was logged.
    #[must_use]
    pub fn all_layers(self, all_layers: bool) -> Self {
        PacketOptions { all_layers, ..self }
    }

    /// Whether the events without packets are written as well, with link type ETW (290).
    #[must_use]
    pub fn events(self, events: bool) -> Self {
        PacketOptions { events, ..self }
    }
}

/// The first pass: where packets were captured.
#[derive(Debug, Default)]
pub struct Interfaces {
    places: BTreeMap<Place, [String; 2]>,
    components: BTreeMap<u16, Component>,
    /// Cards and layers for which events say how packets were received.
    radios: BTreeSet<(u32, u32)>,
}

/// What events say of a component of the network stack.
#[derive(Debug, Default)]
struct Component {
    name: String,
    description: String,
    ipv4: BTreeSet<[u8; 4]>,
    ipv6: BTreeSet<[u8; 16]>,
    mac: Option<[u8; 6]>,
}

impl Interfaces {
    /// None so far.
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
            self.places.entry(part.place).or_insert(part.names);
        } else if let Some(reception) = packet::reception_of(&event) {
            self.radios.insert((reception.card, reception.layer));
        } else if let Some((id, fact)) = packet::fact_of(&event) {
            let component = self.components.entry(id).or_default();
            match fact {
                Fact::Name(name, description) => {
                    (component.name, component.description) = (name, description);
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
        self.places.len()
    }

    /// Whether no packet was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the packets of a place have a header that says how they were received.
    fn has_radio(&self, place: &Place) -> bool {
        matches!(place, Place::Layer { card, layer, link: Link::Wifi, .. }
            if self.radios.contains(&(*card, *layer)))
    }

    /// The places whose packets are written. Of the layers above a network card one is enough: the
    /// card itself, where it is there, or the first.
    fn written(&self, options: PacketOptions) -> impl Iterator<Item = (&Place, &[String; 2])> {
        let mut first = None;
        self.places.iter().filter(move |(place, _)| {
            let Place::Layer { card, layer, .. } = place else {
                return true;
            };
            // The layers of a card follow each other.
            let (_, written) = first
                .filter(|(of, _)| of == card)
                .unwrap_or((*card, *layer));
            first = Some((*card, written));
            options.all_layers || written == *layer
        })
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Packets.
    pub packets: u64,
    /// Events without packets.
    pub events: u64,
    /// Packets of other layers and components, which are left out.
    pub repeated: u64,
    /// Packets with a part missing: they are left out.
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
    /// How the next packet was received, by card, layer and processor.
    radios: BTreeMap<(u32, u32, u16), Radio>,
    /// The number of the interface of events.
    of_events: u32,
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
    /// When writing fails.
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
        let (mut numbers, mut with_radio) = (BTreeMap::new(), Vec::new());
        for (place, names) in interfaces.written(options) {
            let has_radio = interfaces.has_radio(place);
            describe(
                &mut block,
                (place, has_radio),
                names,
                &interfaces.components,
            );
            with_radio.push(has_radio);
            block.write(&mut out)?;
            numbers.insert(place.clone(), numbers.len() as u32);
        }
        if options.events {
            begin_interface(&mut block, event::LINK).text(option::INTERFACE_NAME, "etw");
            block.text(option::INTERFACE_DESCRIPTION, "Event Tracing for Windows");
            block.write(&mut out)?;
        }
        Ok(PacketWriter {
            out,
            options,
            of_events: numbers.len() as u32,
            interfaces: numbers,
            with_radio,
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
    /// When writing fails.
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
            if let Some(part) = packet::part_of(&event) {
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
        self.block.begin(kind::ENHANCED_PACKET).u32(self.of_events);
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
        let is_new = match part.number {
            _ if self.options.all_layers || part.dropped.is_some() => true,
            Some(number) => self.seen.is_new(number),
            None => true,
        };
        let Some(&interface) = self.interfaces.get(&part.place).filter(|_| is_new) else {
            self.written.repeated += u64::from(part.ends);
            return Ok(());
        };
        let key = (
            interface,
            record.processor(),
            record.thread_id().map_or(0, ThreadId::get),
        );
        let (begins, ends) = (part.begins, part.ends);
        let Some(packet) = self.parts.add(key, part.bytes, begins, ends) else {
            return Ok(());
        };
        let time = unix_time(event);
        let (mut packet, length) = complete(part, packet);
        if self.with_radio.get(interface as usize) == Some(&true) {
            let mut with_header = Vec::with_capacity(packet.len() + 16);
            Radio::header(self.radio_of(part, record), &mut with_header);
            with_header.extend_from_slice(&packet);
            packet = Cow::Owned(with_header);
        }
        let captured = packet.len() as u32;
        self.block.begin(kind::ENHANCED_PACKET).u32(interface);
        self.block.u32((time >> 32) as u32).u32(time as u32);
        self.block
            .u32(captured)
            .u32(length.max(captured))
            .bytes(&packet);
        self.options_of(part, event);
        self.written.packets += 1;
        self.block.write(&mut self.out)
    }

    /// How a packet was received, by the event before it.
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
        if let Some((reason, place)) = part.dropped {
            let blank = if self.comment.is_empty() { "" } else { " " };
            let _ = match &part.reason {
                Some(name) => write!(self.comment, "{blank}dropped: {name} (reason {reason})"),
                None => write!(self.comment, "{blank}dropped: reason {reason}"),
            };
            let _ = write!(self.comment, ", location {place:#x}");
        }
        self.block.text(option::COMMENT, &self.comment);
        if let Some(is_sent) = part.is_sent {
            self.block.option(
                option::PACKET_FLAGS,
                &(1 + u32::from(is_sent)).to_le_bytes(),
            );
        }
        if let Some((group, _)) = part.number {
            self.block.option(option::PACKET_ID, &group.to_le_bytes());
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
    /// When writing fails.
    pub fn finish(mut self) -> io::Result<Written> {
        self.written.incomplete = self.parts.incomplete();
        self.out.flush()?;
        Ok(self.written)
    }
}

/// A packet that is whole, and its length on the network. What Windows took out of it or did to it
/// is undone: VLAN tags, and Wi-Fi packets are not encrypted any more.
fn complete<'a>(part: &Part<'_>, mut packet: Cow<'a, [u8]>) -> (Cow<'a, [u8]>, u32) {
    let link = part.place.link();
    if link == Link::Wifi
        && packet.get(1).is_some_and(|flags| flags & PROTECTED != 0)
        && let Some(flags) = packet.to_mut().get_mut(1)
    {
        *flags &= !PROTECTED;
    }
    let mut length = part
        .length
        .or_else(|| original_length(link, &packet))
        .unwrap_or(0);
    if let Some(tagged) = part.vlan.and_then(|tag| vmswitch::tagged(&packet, tag)) {
        length += u32::from(length > 0) * (tagged.len() - packet.len()) as u32;
        packet = Cow::Owned(tagged);
    }
    (packet, length)
}

/// The name of the interface of a place; that of a component comes after it.
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

fn describe(
    block: &mut Block,
    (place, has_radio): (&Place, bool),
    [port_name, card_name]: &[String; 2],
    components: &BTreeMap<u16, Component>,
) {
    let link = place.link();
    begin_interface(block, if has_radio { RADIOTAP } else { link.code() });
    let named = place_name(place);
    match place {
        Place::Layer {
            card,
            is_above,
            layer,
            ..
        } => {
            block.text(option::INTERFACE_NAME, &named);
            if *is_above {
                let about = format!("filter above interface {layer} of card {card}");
                block.text(option::INTERFACE_DESCRIPTION, &about);
            }
        }
        Place::Port { .. } => {
            block.text(option::INTERFACE_NAME, &named);
            let about = [&**port_name, &**card_name].join(" ");
            block.text(option::INTERFACE_DESCRIPTION, about.trim());
        }
        Place::RemoteAccess { .. } => {
            block.text(option::INTERFACE_NAME, &named);
        }
        Place::Component { id, .. } => {
            let unknown = Component::default();
            let component = components.get(id).unwrap_or(&unknown);
            let name = format!("{named} {}", component.name);
            block.text(option::INTERFACE_NAME, name.trim());
            block.text(option::INTERFACE_DESCRIPTION, &component.description);
            for address in &component.ipv4 {
                // The mask is not known.
                let all: Vec<u8> = address.iter().copied().chain([0xff; 4]).collect();
                block.option(option::INTERFACE_IPV4, &all);
            }
            for address in &component.ipv6 {
                let with_prefix: Vec<u8> = address.iter().copied().chain([128]).collect();
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
    let at = match link {
        Link::Ethernet => ETHERNET,
        Link::Raw => 0,
        Link::Wifi => return None,
    };
    let number = |at: usize| {
        let bytes = packet.get(at..at + 2)?;
        Some(u32::from(u16::from_be_bytes(bytes.try_into().ok()?)))
    };
    let version = match (link, number(ETHERNET - 2)) {
        (Link::Ethernet, Some(0x0800)) => 4,
        (Link::Ethernet, Some(0x86dd)) => 6,
        (Link::Raw, _) => packet.first()? >> 4,
        _ => return None,
    };
    let length = match version {
        4 => number(at + 2)?,
        6 => number(at + 4)? + IPV6,
        _ => return None,
    };
    Some(length + at as u32)
}
