//! The network card of the machine, and the other ends of its connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::frame::{End, Mac};
use crate::model::{MachinePlan, NetworkCardPlan};

/// The next hop, to which all frames are sent.
const GATEWAY: Mac = [0x02, 0, 0, 0, 0, 1];
/// The physical address of a card without one.
const OWN: Mac = [0x00, 0x15, 0x5d, 0, 0, 1];
const OWN_IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Hops left of packets from Windows, and of packets that crossed the Internet.
const OWN_HOPS: u8 = 128;
const OTHER_HOPS: u8 = 52;
/// The port of name servers.
const DNS: u16 = 53;
/// The index of the first interface after the loopback one.
pub(super) const FIRST_INDEX: u32 = 5;

/// The card that packets take.
#[derive(Clone, Debug)]
pub(super) struct Card {
    pub name: String,
    pub mac: Mac,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    name_server: IpAddr,
}

impl Card {
    /// The first card of the machine.
    pub fn new(machine: &MachinePlan) -> Self {
        let plan = machine.network_cards.first();
        let mac = plan
            .and_then(|plan| plan.address.first_chunk::<6>().copied())
            .unwrap_or(OWN);
        let addresses_of_card = addresses(plan.map_or("", |plan| &plan.ip));
        let ipv4 = addresses_of_card.iter().find_map(|ip| match ip {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        });
        let ipv6 = addresses_of_card.iter().find_map(|ip| match ip {
            IpAddr::V6(v6) => Some(*v6),
            IpAddr::V4(_) => None,
        });
        let servers = addresses(plan.map_or("", |plan| &plan.dns));
        Card {
            name: plan.map_or_else(|| "Ethernet".to_owned(), named),
            mac,
            ipv4: ipv4.unwrap_or(OWN_IPV4),
            ipv6: ipv6.unwrap_or_else(|| link_local(mac)),
            name_server: servers.first().copied().unwrap_or(IpAddr::V4(NAME_SERVER)),
        }
    }

    /// This end of a connection to an address.
    pub fn own_end(&self, to: IpAddr, port: u16) -> End {
        let ip = if to.is_ipv4() {
            IpAddr::V4(self.ipv4)
        } else {
            IpAddr::V6(self.ipv6)
        };
        End {
            mac: self.mac,
            ip,
            port,
            hops: OWN_HOPS,
        }
    }

    pub fn name_server(&self) -> End {
        other_end(SocketAddr::new(self.name_server, DNS))
    }

    pub fn addresses(&self) -> (Ipv4Addr, Ipv6Addr) {
        (self.ipv4, self.ipv6)
    }
}

fn named(plan: &NetworkCardPlan) -> String {
    plan.name.clone()
}

/// The other end of a connection, beyond the gateway.
pub(super) fn other_end(to: SocketAddr) -> End {
    End {
        mac: GATEWAY,
        ip: to.ip(),
        port: to.port(),
        hops: OTHER_HOPS,
    }
}

/// The link-local address that is made of a physical address.
fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.map(u16::from);
    Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        (a ^ 2) << 8 | b,
        c << 8 | 0xff,
        0xfe00 | d,
        e << 8 | f,
    )
}

/// The IP addresses in a list.
fn addresses(list: &str) -> Vec<IpAddr> {
    list.split([';', ' ', ','])
        .filter_map(|word| word.trim().parse().ok())
        .collect()
}
