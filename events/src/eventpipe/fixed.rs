//! Events whose layout is fixed: the stream does not describe them, or describes them wrongly.

use etl_nettrace::Metadata;

use super::fields::{DescribedField, Layout};

/// The session itself.
const EVENT_PIPE: &str = "Microsoft-DotNETCore-EventPipe";
/// Processes, mappings and symbols of one_collect.
const UNIVERSAL_SYSTEM: &str = "Universal.System";
/// Samples and other events of `perf`, by one_collect.
const UNIVERSAL_EVENTS: &str = "Universal.Events";

/// Whether an event is a context switch of `dotnet-trace collect-linux`.
pub(super) fn is_switch(metadata: &Metadata) -> bool {
    metadata.provider == UNIVERSAL_EVENTS && metadata.name == "cswitch"
}

/// The name and the layout of an event.
#[derive(Debug)]
pub(super) struct FixedEvent {
    pub name: String,
    pub layout: Layout,
}

impl FixedEvent {
    /// The event with this metadata, if its layout is fixed.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        match metadata.provider.as_str() {
            EVENT_PIPE if metadata.event_id == 1 => {
                let mut fields = vec![DescribedField::utf16_text("CommandLine")];
                if metadata.version > 0 {
                    fields.push(DescribedField::utf16_text("OSInformation"));
                    fields.push(DescribedField::utf16_text("ArchInformation"));
                }
                Some(FixedEvent::new("ProcessInfo", fields))
            }
            UNIVERSAL_SYSTEM => {
                let fields = universal_fields(&metadata.name)?;
                Some(FixedEvent::new(&metadata.name, fields))
            }
            UNIVERSAL_EVENTS => {
                let fields = vec![DescribedField::unsigned("Value")];
                Some(FixedEvent::new(&metadata.name, fields))
            }
            _ => None,
        }
    }

    fn new(name: &str, fields: Vec<DescribedField>) -> Self {
        let mut layout = Layout {
            is_complete: true,
            ..Layout::default()
        };
        for field in fields {
            layout.push(field);
        }
        FixedEvent {
            name: name.to_owned(),
            layout,
        }
    }
}

/// The fields of an event of `Universal.System`. one_collect declares its texts as one character
/// each, and writes a length and UTF-8.
fn universal_fields(name: &str) -> Option<Vec<DescribedField>> {
    Some(match name {
        "ProcessCreate" | "ExistingProcess" => vec![
            DescribedField::unsigned("NamespaceId"),
            DescribedField::counted_utf8("Name"),
            DescribedField::counted_utf8("NamespaceName"),
        ],
        "ProcessExit" => Vec::new(),
        "ProcessMapping" => vec![
            DescribedField::unsigned("Id"),
            DescribedField::address("StartAddress"),
            DescribedField::address("EndAddress"),
            DescribedField::address("FileOffset"),
            DescribedField::counted_utf8("FileName"),
            DescribedField::unsigned("MetadataId"),
        ],
        "ProcessSymbol" => vec![
            DescribedField::unsigned("Id"),
            DescribedField::unsigned("MappingId"),
            DescribedField::address("StartAddress"),
            DescribedField::address("EndAddress"),
            DescribedField::counted_utf8("Name"),
        ],
        "ProcessMappingMetadata" => vec![
            DescribedField::unsigned("Id"),
            DescribedField::counted_utf8("SymbolMetadata"),
            DescribedField::counted_utf8("VersionMetadata"),
        ],
        _ => return None,
    })
}
