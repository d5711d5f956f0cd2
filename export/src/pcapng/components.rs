//! What the packet monitor says of the places of its packets in a whole trace: whether packets have
//! numbers that all components share, which edges belong to network cards, and which frames are
//! what they are labelled.

use std::collections::{BTreeMap, BTreeSet};

use super::framing::Framing;
use super::packet::{Edge, Link, Part, Place};

/// What the packets of an edge are.
#[derive(Clone, Copy, Debug, Default)]
struct EdgeFacts {
    has_sent: bool,
    has_other: bool,
    /// Packets that are labelled Wi-Fi, by their bytes.
    ethernet: u64,
    wifi: u64,
}

/// What is known of the places of all packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Components {
    edges: BTreeMap<Edge, EdgeFacts>,
    /// Components that are drivers of network cards.
    miniports: BTreeSet<u16>,
    has_packets: bool,
    has_counts: bool,
    /// Components that dropped packets.
    droppers: BTreeSet<u16>,
}

/// The type of a component that is the driver of a network card.
const MINIPORT: u64 = 2;

impl Components {
    /// Adds the type of a component.
    pub fn add_type(&mut self, component: u16, kind: u64) {
        if kind == MINIPORT {
            self.miniports.insert(component);
        }
    }

    /// Adds a packet.
    pub fn add(&mut self, part: &Part<'_>) {
        let Some(edge) = part.edge else {
            return;
        };
        self.has_packets = true;
        self.has_counts |= part.appearance != Some(0);
        if part.dropped.is_some() {
            self.droppers.insert(edge.component);
        }
        let facts = self.edges.entry(edge).or_default();
        match part.is_sent {
            Some(true) => facts.has_sent = true,
            _ => facts.has_other = true,
        }
        match part.framing {
            Some(Framing::Ethernet) => facts.ethernet += 1,
            Some(Framing::Wifi) => facts.wifi += 1,
            _ => {}
        }
    }

    /// Where a packet was captured. If its bytes do not tell its kind, it is like most others of
    /// its edge, else what it is labelled.
    pub fn place_of(&self, part: &Part<'_>) -> Place {
        match part.edge {
            Some(edge) if part.framing == Some(Framing::Unclear) => {
                self.unclear_place(edge, &part.place)
            }
            _ => part.place.clone(),
        }
    }

    /// The same for the place of a packet whose bytes do not tell its kind.
    pub fn unclear_place(&self, edge: Edge, place: &Place) -> Place {
        if let Some(facts) = self.edges.get(&edge)
            && facts.ethernet > facts.wifi
        {
            return Place::Component {
                id: edge.component,
                link: Link::Ethernet,
            };
        }
        place.clone()
    }

    /// The layer that is written, if packets have no number that all components share. Since
    /// Windows 11 24H2 (builds 26100 and 26200) each appearance of a packet has a group of its own,
    /// and its count of appearances is 0.
    pub fn layer(&self) -> Option<Layer> {
        if !self.has_packets || self.has_counts {
            return None;
        }
        let mut layer = Layer::default();
        for (edge, facts) in &self.edges {
            if !self.miniports.contains(&edge.component) {
                continue;
            }
            // The edges of a component follow each other; the first one of each direction is used.
            if facts.has_sent {
                layer.sent.entry(edge.component).or_insert(edge.edge);
            }
            if facts.has_other {
                layer.other.entry(edge.component).or_insert(edge.edge);
            }
        }
        layer.droppers = self.droppers.clone();
        (!layer.sent.is_empty() || !layer.other.is_empty()).then_some(layer)
    }

    /// Whether packets have no number that all components share, and no network card logged any.
    pub fn is_without_layer(&self) -> bool {
        self.has_packets && !self.has_counts && self.layer().is_none()
    }
}

/// The edges of network cards whose packets are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    /// By component, for the packets that the machine sends.
    sent: BTreeMap<u16, u16>,
    /// By component, for other packets.
    other: BTreeMap<u16, u16>,
    droppers: BTreeSet<u16>,
}

impl Layer {
    /// Whether packets of a place are written.
    pub fn has_place(&self, place: &Place) -> bool {
        match place {
            Place::Component { id, .. } => {
                self.sent.contains_key(id)
                    || self.other.contains_key(id)
                    || self.droppers.contains(id)
            }
            _ => true,
        }
    }

    /// Whether a packet is of the edges.
    pub fn contains(&self, part: &Part<'_>) -> bool {
        let Some(Edge { component, edge }) = part.edge else {
            return true;
        };
        let edges = match part.is_sent {
            Some(true) => &self.sent,
            _ => &self.other,
        };
        edges.get(&component) == Some(&edge)
    }
}
