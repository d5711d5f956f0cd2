//! Events of the CLR's runtime and rundown providers.

use etl_format::read::Record;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

/// The stack event of the runtime provider, and that of the rundown provider.
const RUNTIME_STACK: u16 = 82;
const RUNDOWN_STACK: u16 = 0;

/// Whether an event is one of the CLR's two providers.
pub(super) fn is_clr(record: &Record<'_>) -> bool {
    record.is_event() && record.provider().is_some_and(|p| p == CLR_RUNTIME || p == CLR_RUNDOWN)
}

/// Whether an event is the stack of the CLR's event before it on the same thread.
pub(crate) fn is_clr_stack(record: &Record<'_>) -> bool {
    let stack = |h: etl_format::read::EventHeader| match h.provider {
        CLR_RUNTIME => h.descriptor.id == RUNTIME_STACK,
        CLR_RUNDOWN => h.descriptor.id == RUNDOWN_STACK,
        _ => false,
    };
    record.event().is_some_and(stack)
}

/// Whether an event of the CLR is state that other events need: type names, code, modules,
/// assemblies and domains, entry points, maps from IL to code, and the runtime itself.
///
/// Source: the providers' tables; 135 to 140, 149 and 150 are the rundown of the first release.
pub(super) fn is_clr_state(record: &Record<'_>) -> bool {
    record.event().is_some_and(|h| match h.provider {
        CLR_RUNTIME => {
            matches!(h.descriptor.id, 15 | 72 | 135..=144 | 149..=160 | 187 | 190)
        }
        CLR_RUNDOWN => h.descriptor.id != RUNDOWN_STACK,
        _ => false,
    })
}
