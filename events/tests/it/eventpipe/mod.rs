//! EventPipe streams as traces.

mod hostile;
mod made;
mod opened;
mod recorded;
mod runtimes;
mod switches;

#[path = "../../../../nettrace/examples/common/collect_linux.rs"]
mod collect_linux;

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../../../nettrace/examples/common/write.rs"]
mod write;

use etl_events::Event;
use etl_events::eventpipe::{ConversionReport, ConvertOptions, convert};

/// A converted stream.
pub struct Converted {
    pub trace: Vec<u8>,
    pub report: ConversionReport,
}

pub fn converted(stream: &[u8]) -> Converted {
    let finished = convert(stream, Vec::new(), &ConvertOptions::default()).unwrap();
    Converted {
        trace: finished.output,
        report: finished.report,
    }
}

/// The names and values of the fields of an event.
pub fn fields_text(event: &Event<'_>) -> String {
    let fields = event.fields().expect("the event is described");
    let texts: Vec<String> = fields
        .map(|(field, value)| format!("{}={value}", field.name))
        .collect();
    texts.join(" ")
}
