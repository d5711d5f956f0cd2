//! How a Wi-Fi packet was received (event 1002), as the header before a packet of link type
//! radiotap.

use etl_format::cursor::Bytes;

/// Flag of Windows of a packet with a wrong checksum.
const WRONG_CHECKSUM: u32 = 2;
/// The same flag in the header.
const HEADER_WRONG_CHECKSUM: u8 = 0x40;

/// Bits of the fields that the header contains.
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const SIGNAL: u32 = 1 << 5;

/// Flags of channels.
const BAND_2_GHZ: u16 = 0x0080;
const BAND_5_GHZ: u16 = 0x0100;

/// How a packet was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Radio {
    flags: u32,
    /// MHz.
    frequency: u32,
    /// dBm.
    signal: i32,
    /// In units of 500 kbit/s.
    rate: u8,
}

impl Radio {
    /// Reads the metadata of an event (`DOT11_EXTSTA_RECV_CONTEXT`).
    pub fn of(metadata: &[u8]) -> Option<Self> {
        Some(Radio {
            flags: metadata.u32_at(4)?,
            frequency: metadata.u32_at(12)?,
            signal: metadata.u32_at(20)?.cast_signed(),
            rate: *metadata.get(24)?,
        })
    }

    /// Appends the header of a packet; without fields if `radio` is `None`.
    pub fn header(radio: Option<Self>, out: &mut Vec<u8>) {
        let Some(radio) = radio else {
            out.extend([0, 0, 8, 0, 0, 0, 0, 0]);
            return;
        };
        let flags = if radio.flags & WRONG_CHECKSUM != 0 {
            HEADER_WRONG_CHECKSUM
        } else {
            0
        };
        let band = if radio.frequency < 4_000 {
            BAND_2_GHZ
        } else {
            BAND_5_GHZ
        };
        let signal = radio.signal.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
        out.extend([0, 0, 15, 0]);
        out.extend((FLAGS | RATE | CHANNEL | SIGNAL).to_le_bytes());
        out.extend([flags, radio.rate]);
        out.extend(u16::try_from(radio.frequency).unwrap_or(0).to_le_bytes());
        out.extend(band.to_le_bytes());
        out.extend(signal.to_le_bytes());
    }
}
