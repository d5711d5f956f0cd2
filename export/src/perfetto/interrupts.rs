//! What interrupts idle processors: a process `DPC` and a process `ISR`, with a thread for each
//! processor.
//!
//! Perfetto shows samples by thread. The ids of processes and threads of Windows are multiples of
//! four, so the ids between them are free.

use etl_analysis::Interrupt;
use etl_analysis::profile::{ProcessorInterrupt, Profile};

use super::Context;
use super::fields::{packet, process, process_tree, thread};
use super::packets::Packets;
use super::storage::Storage;
use crate::protobuf::Message;

/// The id of the process of an interrupt.
pub(super) const fn process_id(interrupt: Interrupt) -> u32 {
    match interrupt {
        Interrupt::Dpc => 1,
        Interrupt::Isr => 2,
    }
}

/// The id of the thread of an interrupt. The first one is the main thread of its process.
pub(super) const fn thread_id(interrupt: ProcessorInterrupt) -> u32 {
    let processor = interrupt.processor as u32;
    4 * processor + process_id(interrupt.kind)
}

/// Writes the names of the interrupts that a profile has.
pub(super) fn write<S: Storage>(
    context: &Context<'_>,
    profile: &Profile,
    packets: &mut Packets<S>,
) {
    let nanos = context.time.nanos(context.first_time());
    for root in profile.roots() {
        let Some(interrupt) = root.interrupt else {
            continue;
        };
        let pid = process_id(interrupt.kind);
        let mut of_process = Message::default();
        of_process.uint(process::PID, pid.into());
        of_process.text(process::COMMAND_LINE, interrupt.kind.name());
        let mut of_thread = Message::default();
        of_thread.uint(thread::TID, thread_id(interrupt).into());
        of_thread.text(thread::NAME, &root.process_name);
        of_thread.uint(thread::PID, pid.into());
        let mut tree = Message::default();
        tree.message(process_tree::PROCESSES, &of_process);
        tree.message(process_tree::THREADS, &of_thread);
        packets.write(Some(nanos), packet::PROCESS_TREE, &tree);
    }
}
