//! Traces from files, pipes and memory: packed ones unpacked (gzip, Zstandard, ZIP), EventPipe
//! streams (`.nettrace`) converted, and files of other formats recognized.
//!
//! ```
//! use etl_events::input::{Input, InputOptions};
//! use etl_format::read::Options;
//!
//! fn count(path: &std::path::Path) -> etl_events::Result<u64> {
//!     let mut input = Input::open(path, &InputOptions::default())?;
//!     let mut trace = input.trace(&Options::salvage())?;
//!     let mut records = trace.records(etl_format::read::Order::File)?;
//!     let mut count = 0;
//!     while let Some(_) = records.next_record()? {
//!         count += 1;
//!     }
//!     Ok(count)
//! }
//! ```

mod ahead;
mod any;
mod bytes;
mod data;
mod error;
mod eventpipe;
mod file;
mod handle;
mod head;
mod identity;
mod map;
mod open;
mod packing;
mod size;
mod sniff;
mod spooled_output;
#[cfg(feature = "unpack")]
mod stop;
#[cfg(feature = "unpack")]
mod temporary;
#[cfg(feature = "unpack")]
mod unpack;
mod unpacker;

pub use any::{AnyBlock, AnySource};
pub use bytes::{Bytes, ReadSeek};
pub use error::{Error, OptionNames};
pub use file::open_file;
pub use head::Head;
pub use identity::{FileIdentities, is_same_file};
pub use map::Mapped;
pub use open::{Input, InputOptions};
pub use packing::Unpacker;
pub use size::size;
pub use sniff::{binary_format, what};
#[cfg(feature = "unpack")]
pub use temporary::{Temporary, TemporaryError};
pub use unpacker::Unpacked;
