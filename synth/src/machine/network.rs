//! Connections with other computers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::model::NetworkCardPlan;

/// The first port that the system chooses.
const FIRST_PORT: u16 = 49_152;

/// What a process communicates through, as it asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub connection: Connection,
    /// The thread that uses it.
    pub thread: usize,
}

/// Both sides of a communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub udp: bool,
}

/// The network of the machine.
#[derive(Debug)]
pub(crate) struct Network {
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    next_port: u16,
    /// Connections that are made, with the index of their process.
    pub connected: BTreeMap<(SocketAddr, SocketAddr), usize>,
}

impl Network {
    pub fn new(cards: &[NetworkCardPlan]) -> Self {
        let mut ipv4 = None;
        let mut ipv6 = None;
        for address in cards.iter().flat_map(|card| card.ip.split(';')) {
            ipv4 = ipv4.or(address.trim().parse().ok());
            ipv6 = ipv6.or(address.trim().parse().ok());
        }
        Network {
            ipv4: ipv4.unwrap_or(Ipv4Addr::new(10, 0, 0, 4)),
            ipv6: ipv6.unwrap_or(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 4)),
            next_port: FIRST_PORT,
            connected: BTreeMap::new(),
        }
    }

    /// The address of this machine for a remote address, with this port, or a free port if it is 0.
    pub fn local(&mut self, remote: SocketAddr, port: u16) -> SocketAddr {
        let ip = match remote.ip() {
            own if own.is_loopback() => own,
            IpAddr::V4(_) => self.ipv4.into(),
            IpAddr::V6(_) => self.ipv6.into(),
        };
        let port = if port == 0 {
            let free = self.next_port;
            self.next_port = free.checked_add(1).unwrap_or(FIRST_PORT);
            free
        } else {
            port
        };
        SocketAddr::new(ip, port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_those_of_the_card() {
        let card = NetworkCardPlan {
            name: String::new(),
            address: Vec::new(),
            ip: "2001:db8::5; 10.1.2.3".to_owned(),
            dns: String::new(),
        };
        let mut network = Network::new(&[card]);
        let local = |network: &mut Network, remote: &str, port| {
            network.local(remote.parse().unwrap(), port).to_string()
        };
        assert_eq!(local(&mut network, "10.9.9.9:80", 0), "10.1.2.3:49152");
        assert_eq!(
            local(&mut network, "[2001:db8::9]:80", 0),
            "[2001:db8::5]:49153"
        );
        assert_eq!(local(&mut network, "127.0.0.1:80", 5000), "127.0.0.1:5000");
    }
}
