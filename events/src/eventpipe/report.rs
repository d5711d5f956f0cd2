//! What a conversion did.

use etl_nettrace::Damage;
use serde::{Serialize, Serializer};

/// What a conversion of a stream wrote, lost and left out. `docs/nettrace.md` describes its JSON.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct ConversionReport {
    /// The version of the stream's format: 4 or 6.
    pub version: u32,
    /// The traced process, if the stream states it. In version 6 each thread may have another.
    pub process_id: Option<u64>,
    /// Records written, one for each event.
    pub events: u64,
    /// Events that the session dropped, as the numbers of each thread's events show. Events in
    /// damaged parts are included.
    pub events_lost: u64,
    /// Events that are not written because they do not fit into a record: it has at most 65,535
    /// bytes with its stack and its description.
    pub too_long: u64,
    /// Events that are not written because their id, version or level is larger than a record's.
    pub out_of_range: u64,
    /// Events with a field that TraceLogging cannot describe. Only the fields before it are
    /// described.
    pub undescribed: u64,
    /// Events that are earlier than the start of the stream. They have the time of the start.
    pub before_start: u64,
    /// Whether the end of the stream was read. A killed process leaves a stream without an end.
    pub is_complete: bool,
    /// If the stream is cut: the number of its bytes.
    pub cut_offset: Option<u64>,
    /// What could not be read, at most 1,000 faults; the end of a cut stream is the last one. The
    /// offsets are of the stream.
    #[serde(serialize_with = "serialize_damage")]
    pub damage: Vec<Damage>,
}

impl ConversionReport {
    /// The damage without the missing end of a cut stream.
    pub fn damage_before_cut(&self) -> impl Iterator<Item = &Damage> {
        let cut = self.cut_offset;
        let damage = self.damage.iter();
        damage.filter(move |fault| cut != Some(fault.range.end))
    }
}

/// A part of a stream that could not be read.
#[derive(Serialize)]
struct DamageRow {
    offset: u64,
    end: u64,
    code: &'static str,
    message: String,
}

fn serialize_damage<S: Serializer>(damage: &[Damage], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(damage.iter().map(|fault| DamageRow {
        offset: fault.range.start,
        end: fault.range.end,
        code: fault.error.code(),
        message: fault.error.to_string(),
    }))
}
