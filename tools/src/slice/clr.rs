//! Events of the CLR's runtime and rundown providers.

use etl_format::read::Record;
use etl_schema::views::clr::ClrProvider;

/// The id of the runtime provider's stack event. It is a constant, because reading the tables takes
/// longer than reading a short trace.
const RUNTIME_STACK: u16 = 82;

/// The id of the rundown provider's stack event.
const RUNDOWN_STACK: u16 = 0;

/// An event of one of the CLR's two providers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClrEvent {
    provider: ClrProvider,
    id: u16,
}

impl ClrEvent {
    pub fn of(record: &Record<'_>) -> Option<Self> {
        if !record.is_event() {
            return None;
        }
        let provider = ClrProvider::from_guid(record.provider()?)?;
        Some(ClrEvent {
            provider,
            id: record.descriptor()?.id,
        })
    }

    /// Whether it is the stack of the previous event of the CLR on the same thread.
    pub fn is_stack(self) -> bool {
        let stack = match self.provider {
            ClrProvider::Runtime => RUNTIME_STACK,
            ClrProvider::Rundown => RUNDOWN_STACK,
        };
        self.id == stack
    }

    /// Whether it is state that other events need: type names, code, modules, assemblies and
    /// domains, entry points, maps from IL to code, and the runtime itself.
    ///
    /// Source: the providers' tables; 135 to 140, 149 and 150 are the rundown of the first release.
    pub fn is_state(self) -> bool {
        if self.provider.is_rundown() {
            return !self.is_stack();
        }
        matches!(self.id, 15 | 72 | 135..=144 | 149..=160 | 187 | 190)
    }
}
