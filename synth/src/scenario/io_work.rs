//! `read-file`, `send` and the like: what a process does with files and the network.

use std::net::SocketAddr;

use super::args::Args;
use crate::model::{FileTransfer, IoWork, NetworkMessage, PageRead, Work};

/// The words, for reports of errors.
pub(super) const WORDS: &str = "open-file, read-file, write-file, page-in, flush-file, \
                                close-file, delete-file, connect, accept, send, receive, \
                                disconnect";
/// Bytes of a transfer that states none.
const PAGE: u32 = 4096;
/// Bytes of the largest read for a page fault: one request to the disk.
const LARGEST_PAGE_IN: u32 = 1 << 20;

/// Work with a file or the network; `None` if the node is none of these, or has an error.
pub(super) fn work(mut args: Args<'_, '_>) -> Option<Work> {
    let work = match args.name() {
        "open-file" => IoWork::Open(path(&mut args)?),
        "flush-file" => IoWork::Flush(path(&mut args)?),
        "close-file" => IoWork::Close(path(&mut args)?),
        "delete-file" => IoWork::Delete(path(&mut args)?),
        "read-file" | "write-file" => IoWork::Transfer(FileTransfer {
            write: args.name() == "write-file",
            path: path(&mut args)?,
            offset: args.get("offset").unwrap_or(0),
            bytes: bytes(&mut args),
            cached: args.flag("cached"),
        }),
        "page-in" => IoWork::PageIn(PageRead {
            path: path(&mut args)?,
            offset: args.get("offset").unwrap_or(0),
            bytes: args
                .within("bytes", 1..=LARGEST_PAGE_IN, "from 1 byte to 1 MiB")
                .unwrap_or(PAGE),
        }),
        "connect" => IoWork::Connect(address(&mut args)?),
        "disconnect" => IoWork::Disconnect(address(&mut args)?),
        "accept" => {
            let remote = address(&mut args)?;
            let port = args.within("port", 1..=u16::MAX, "a port is a number up to 65535");
            IoWork::Accept(remote, port.unwrap_or(80))
        }
        "send" | "receive" => {
            let sent = args.name() == "send";
            let remote = address(&mut args)?;
            let bytes = bytes(&mut args);
            let port = args.get("port").unwrap_or(0);
            let udp = args.flag("udp");
            if port != 0 && !udp {
                let help = Some("udp=#true; a connection has the port of its beginning");
                args.error("only messages by UDP choose their port", "port", help);
            }
            IoWork::Message(NetworkMessage {
                remote,
                sent,
                bytes,
                udp: udp.then_some(port),
            })
        }
        _ => return None,
    };
    args.finish();
    Some(Work::Io(work))
}

fn bytes(args: &mut Args<'_, '_>) -> u32 {
    args.within("bytes", 1..=u32::MAX, "at least 1 byte")
        .unwrap_or(PAGE)
}

fn path(args: &mut Args<'_, '_>) -> Option<String> {
    let path = args.next_text("a path", 1024)?;
    if !matches!(path.as_bytes(), [letter, b':', b'\\', _, ..] if letter.is_ascii_alphabetic()) {
        let help = Some("\"C:\\\\App\\\\orders.db\"");
        args.error("a path has a drive letter", path.clone(), help);
    }
    Some(path)
}

fn address(args: &mut Args<'_, '_>) -> Option<SocketAddr> {
    let text: String = args.next("an address with a port")?;
    let address = text.parse().ok();
    if address.is_none() {
        let help = Some("\"10.0.0.9:443\" or \"[2001:db8::9]:443\"");
        args.error("not an address with a port", text, help);
    }
    address
}
