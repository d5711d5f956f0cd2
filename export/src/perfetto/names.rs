//! Processes and threads with their names, from the whole recording.

use etl_analysis::ProcessIndex;
use etl_analysis::machine::{Process, Thread};
use etl_format::Ticks;
use foldhash::HashSet;

use super::Context;
use super::fields::{packet, process, process_tree, thread};
use super::packets::Packets;
use super::storage::Storage;
use super::time::TraceTime;
use super::tracks::{Owner, Row, Slice, TraceWriter, Value};
use crate::protobuf::Message;

/// Messages of threads in a packet, at most.
const MAX_THREADS: usize = 256;

/// Writes all selected processes and threads: each with the time at which it started, so that an id
/// that is used again names another process from then on.
pub(super) fn write<S: Storage>(context: &Context<'_>, writer: &mut TraceWriter<S>) {
    write_processes(context, writer);
    write_threads(context, &mut writer.packets);
}

fn write_processes<S: Storage>(context: &Context<'_>, writer: &mut TraceWriter<S>) {
    let first = context.first_time();
    let mut order: Vec<(u64, ProcessIndex)> = Vec::new();
    for (index, process) in context.machine.indexed_processes() {
        let started = process.started().unwrap_or(first);
        let selection = context.selection;
        if process.pid() != 0 && selection.admits_process(context.machine, index, started) {
            order.push((nanos_of_names(context, process.started()), index));
        }
    }
    // Parents first: an importer that meets a parent later takes it for another process.
    order.sort_unstable();
    let with_selected_threads = processes_of_selected_threads(context);
    for (nanos, index) in order {
        let Some(process) = context.machine.process(index) else {
            continue;
        };
        let mut tree = Message::default();
        tree.message(
            process_tree::PROCESSES,
            &process_message(process, context.time),
        );
        writer
            .packets
            .write(Some(nanos), packet::PROCESS_TREE, &tree);
        let has_selected_thread = match &with_selected_threads {
            Some(indices) => indices.contains(&index),
            None => true,
        };
        if has_selected_thread && starts_or_ends(context, process) {
            write_lifetime(context, process, writer);
        }
    }
}

/// When the names of a process or thread are written: before everything else that it does.
fn nanos_of_names(context: &Context<'_>, started: Option<Ticks>) -> u64 {
    match started {
        Some(started) => context.time.nanos(started).saturating_sub(1),
        None => context.time.nanos(context.first_time()),
    }
}

/// The indices of the processes with selected threads; `None` if all threads are selected.
fn processes_of_selected_threads(context: &Context<'_>) -> Option<HashSet<ProcessIndex>> {
    let tids = context.selection.selected_threads();
    if tids.is_empty() {
        return None;
    }
    let mut processes = HashSet::default();
    for thread in context.machine.threads() {
        if tids.contains(&thread.tid) {
            let started = thread.started.unwrap_or(Ticks::MIN);
            processes.extend(context.machine.process_at(thread.pid, started));
        }
    }
    Some(processes)
}

/// Whether a process started or ended at a selected time.
fn starts_or_ends(context: &Context<'_>, process: &Process) -> bool {
    let mut times = [process.started(), process.ended()].into_iter().flatten();
    times.any(|time| context.selection.admits_time(time))
}

fn process_message(process: &Process, time: TraceTime) -> Message {
    let mut message = Message::default();
    message.uint(process::PID, process.pid().get().into());
    if let Some(parent) = process.parent_pid() {
        message.uint(process::PPID, parent.get().into());
    }
    if !process.name().is_empty() {
        message.text(process::COMMAND_LINE, process.name());
        for argument in arguments(process.command_line()) {
            message.text(process::COMMAND_LINE, argument);
        }
    }
    if let Some(started) = process.started() {
        message.uint(process::START, time.nanos(started));
    }
    message
}

/// Writes threads. Those that started at the same time share packets: most of them were there when
/// the recording began.
fn write_threads<S: Storage>(context: &Context<'_>, packets: &mut Packets<S>) {
    let machine = context.machine;
    let first = context.first_time();
    let mut tree = Message::default();
    let mut tree_len = 0;
    let mut tree_nanos = 0;
    for thread in machine.threads().iter().filter(|thread| thread.tid != 0) {
        let started = thread.started.unwrap_or(first);
        let process = machine.process_at(thread.pid, started);
        let selection = context.selection;
        if !selection.admits(machine, process, Some(thread.tid), started) {
            continue;
        }
        let nanos = nanos_of_names(context, thread.started);
        if tree_len > 0 && (tree_nanos != nanos || tree_len >= MAX_THREADS) {
            packets.write(Some(tree_nanos), packet::PROCESS_TREE, &tree);
            tree.clear();
            tree_len = 0;
        }
        tree.message(process_tree::THREADS, &thread_message(thread));
        tree_len += 1;
        tree_nanos = nanos;
    }
    if tree_len > 0 {
        packets.write(Some(tree_nanos), packet::PROCESS_TREE, &tree);
    }
}

/// Writes the life of a process that started or ended in the recording, as a slice.
fn write_lifetime<S: Storage>(
    context: &Context<'_>,
    process: &Process,
    writer: &mut TraceWriter<S>,
) {
    let status = process
        .exit_status()
        .map(|status| i64::from(status).to_string());
    let mut values = Vec::new();
    if !process.command_line().is_empty() {
        values.push(("command_line", Value::Text(process.command_line())));
    }
    if let Some(status) = &status {
        values.push(("exit_status", Value::Text(status)));
    }
    let started = process.started().unwrap_or_else(|| context.first_time());
    let name = if process.name().is_empty() {
        "(unknown name)"
    } else {
        process.name()
    };
    writer.slice(Slice {
        owner: Owner {
            pid: process.pid().get(),
            ..Owner::default()
        },
        row: Row::Lifetime,
        from: context.time.nanos(started),
        to: process.ended().map(|ended| context.time.nanos(ended)),
        name,
        values: &values,
    });
}

fn thread_message(thread: &Thread) -> Message {
    let mut message = Message::default();
    message.uint(thread::TID, thread.tid.get().into());
    if !thread.name.is_empty() {
        message.text(thread::NAME, &thread.name);
    }
    message.uint(thread::PID, thread.pid.get().into());
    message
}

/// The words of a command line after the first, which is the program; quotes stay.
fn arguments(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map_or("", |(_, rest)| rest),
        None => line
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest),
    };
    rest.split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_follow_the_program() {
        let words = |line| arguments(line).collect::<Vec<_>>();
        assert_eq!(
            words(r#""C:\Program Files\a.exe" -x  "b c""#),
            ["-x", "\"b", "c\""]
        );
        assert_eq!(words(r"C:\a.exe -x"), ["-x"]);
        assert_eq!(
            (words("a.exe"), words("\"a"), words("")),
            (vec![], vec![], vec![])
        );
    }
}
