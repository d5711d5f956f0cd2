//! `resolve`, `exchange` and `replay`: packets on the network.

use std::net::{IpAddr, SocketAddr};

use super::args::Args;
use crate::model::{Action, ExchangePlan, ResolvePlan};
use crate::network::packets;
use crate::time::MILLISECOND;

/// Bytes of a request or a response.
const MAX_BYTES: u32 = 16 << 20;
/// Bytes of a capture.
pub(super) const MAX_CAPTURE: usize = 256 << 20;
/// Characters of a name, and of each of its labels.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// Addresses of a name: so many fit into a response.
const MAX_ANSWERS: usize = 100;

/// `resolve "example.com" answer="192.0.2.7" round-trip="8ms"`
pub(super) fn resolve(mut args: Args<'_, '_>) -> Option<ResolvePlan> {
    let name: String = args.next("a name")?;
    let mut labels = name.trim_end_matches('.').split('.');
    if name.len() > MAX_NAME
        || !labels.all(|label| (1..=MAX_LABEL).contains(&label.len()) && label.is_ascii())
    {
        let help = Some("labels of 1 to 63 ASCII characters with dots between them");
        args.error(format!("\"{name}\" is not a DNS name"), "here", help);
    }
    let message = "answer: up to 100 addresses, all IPv4 or all IPv6";
    let answers = args.parsed("answer", answers, message, Some("answer=\"192.0.2.7\""));
    let round_trip = args.time("round-trip").unwrap_or(8 * MILLISECOND);
    args.finish();
    Some(ResolvePlan {
        name,
        answers: answers.unwrap_or_default(),
        round_trip,
    })
}

/// `exchange "192.0.2.7:443" send=517 receive=4200 round-trip="20ms"`
pub(super) fn exchange(mut args: Args<'_, '_>) -> Option<ExchangePlan> {
    let to: String = args.next("an address and a port")?;
    let Ok(to) = to.parse::<SocketAddr>() else {
        let help = Some("\"192.0.2.7:443\" or \"[2001:db8::1]:443\"");
        args.error(
            format!("\"{to}\" is not an address with a port"),
            "here",
            help,
        );
        return None;
    };
    let mut plan = ExchangePlan::new(to);
    let message = "at most 16 MB in one direction";
    plan.send = args
        .within("send", 0..=MAX_BYTES, message)
        .unwrap_or(plan.send);
    plan.receive = args
        .within("receive", 0..=MAX_BYTES, message)
        .unwrap_or(plan.receive);
    plan.round_trip = args.time("round-trip").unwrap_or(plan.round_trip);
    args.finish();
    Some(plan)
}

/// `replay "capture.pcapng" address="00-15-5D-7C-58-28"`
pub(super) fn replay(mut args: Args<'_, '_>) -> Option<Action> {
    let file: String = args.next("a capture of packets")?;
    let help = Some("six bytes: 00-15-5D-7C-58-28");
    let own_address = args.parsed(
        "address",
        |text| super::value::bytes(text)?.try_into().ok(),
        "address: not a physical address",
        help,
    );
    let read =
        (args.reader.script.files)(&args.reader.beside(&file)).map_err(|error| error.to_string());
    let read = read.and_then(|bytes| match bytes.len() {
        0..=MAX_CAPTURE => packets(&bytes, own_address).map_err(|error| error.to_string()),
        _ => Err("more than 256 MB".to_owned()),
    });
    let action = match read {
        Ok(packets) => Some(Action::Replay {
            file,
            packets: packets.into(),
        }),
        Err(problem) => {
            let help = Some("a pcap or pcapng file beside the script");
            args.error(format!("{file}: {problem}"), "cannot be replayed", help);
            None
        }
    };
    args.finish();
    action
}

/// Addresses of one family.
fn answers(text: &str) -> Option<Vec<IpAddr>> {
    let words = text.split([' ', ',', ';']).filter(|word| !word.is_empty());
    let list: Vec<IpAddr> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let same = list.iter().all(|a| a.is_ipv4()) || list.iter().all(|a| a.is_ipv6());
    (same && list.len() <= MAX_ANSWERS).then_some(list)
}
