//! Processes and threads with their names, from the whole recording.

use etl_analysis::machine::{Process, Thread};
use etl_analysis::{Machine, ProcessIndex};
use etl_format::Ticks;

use foldhash::HashSet;

use super::fields::{packet, process, process_tree, thread};
use super::packets::Packets;
use super::selection::Selection;
use super::storage::Storage;
use super::time::TraceTime;
use super::tracks::{Owner, Row, Tracks, Value};
use crate::protobuf::Message;

/// Writes all selected processes and threads: each with the time at which it started, so that an id
/// that is used again names another process from then on.
pub(super) fn write<S: Storage>(
    machine: &Machine,
    selection: &Selection,
    time: TraceTime,
    (tracks, packets): (&mut Tracks, &mut Packets<S>),
) {
    let first = machine.span().map_or(Ticks::new(0), |span| span.first);
    let started = |at: Option<Ticks>| {
        // Before everything else that the process or the thread does.
        let nanos = time.nanos(at.unwrap_or(first).get());
        if at.is_some() {
            nanos.saturating_sub(1)
        } else {
            nanos
        }
    };
    let selected = |index: ProcessIndex, process: &Process| {
        selection.admits_process(machine, index, process.started().unwrap_or(first))
    };
    // Of selected threads, the processes.
    let threads = selection.selected_threads();
    let of_threads: HashSet<ProcessIndex> = (machine.threads().iter())
        .filter(|thread| threads.contains(&thread.tid))
        .filter_map(|of| machine.process_at(of.pid, of.started.unwrap_or(Ticks::MIN)))
        .collect();
    // Whether the life of a selected process is written: it started or ended at the selected time.
    let has_life = |index: ProcessIndex, of: &Process| {
        let mut ends = [of.started(), of.ended()].into_iter().flatten();
        ends.any(|at| selection.admits_time(at))
            && (threads.is_empty() || of_threads.contains(&index))
    };
    // Parents first: an importer that meets a parent later takes it for another process.
    let mut order: Vec<(u64, ProcessIndex)> = (machine.indexed_processes())
        .filter(|(index, of)| of.pid() != 0 && selected(*index, of))
        .map(|(index, of)| (started(of.started()), index))
        .collect();
    order.sort_unstable();
    for (at, index) in order {
        let Some(of) = machine.process(index) else {
            continue;
        };
        let mut part = Message::default();
        part.uint(process::PID, of.pid().get().into());
        if let Some(parent) = of.parent_pid() {
            part.uint(process::PPID, parent.get().into());
        }
        if !of.name().is_empty() {
            part.text(process::COMMAND_LINE, of.name());
            for argument in arguments(of.command_line()) {
                part.text(process::COMMAND_LINE, argument);
            }
        }
        if let Some(at) = of.started() {
            part.uint(process::START, time.nanos(at.get()));
        }
        let mut message = Message::default();
        message.message(process_tree::PROCESSES, &part);
        packets.write(Some(at), packet::PROCESS_TREE, &message);
        if has_life(index, of) {
            lifetime(time, of, first, (tracks, packets));
        }
    }
    let (mut message, mut size) = (Message::default(), 0);
    let mut at_start = None;
    for of in machine.threads().iter().filter(|of| of.tid != 0) {
        let begun = of.started.unwrap_or(first);
        let process = machine.process_at(of.pid, begun);
        if !selection.admits(machine, process, Some(of.tid), begun) {
            continue;
        }
        let at = started(of.started);
        // Those that were there from the beginning share packets.
        if size > 0 && (at_start != Some(at) || size >= 256) {
            packets.write(at_start, packet::PROCESS_TREE, &message);
            message.clear();
            size = 0;
        }
        message.message(process_tree::THREADS, &thread_message(of));
        (at_start, size) = (Some(at), size + 1);
    }
    if size > 0 {
        packets.write(at_start, packet::PROCESS_TREE, &message);
    }
}

/// Writes the life of a process that started or ended in the recording, as a slice.
fn lifetime<S: Storage>(
    time: TraceTime,
    of: &Process,
    first: Ticks,
    (tracks, packets): (&mut Tracks, &mut Packets<S>),
) {
    let mut values = Vec::new();
    if !of.command_line().is_empty() {
        values.push(("command_line", Value::Text(of.command_line())));
    }
    let status = of.exit_status().map(|status| i64::from(status).to_string());
    values.extend(
        status
            .as_deref()
            .map(|status| ("exit_status", Value::Text(status))),
    );
    let owner = Owner {
        pid: of.pid().get(),
        ..Owner::default()
    };
    let span = (
        time.nanos(of.started().unwrap_or(first).get()),
        of.ended().map(|at| time.nanos(at.get())),
    );
    let name = if of.name().is_empty() {
        "(unknown name)"
    } else {
        of.name()
    };
    tracks.slice(packets, (owner, Row::Lifetime), span, name, &values);
}

fn thread_message(of: &Thread) -> Message {
    let mut message = Message::default();
    message.uint(thread::TID, of.tid.get().into());
    if !of.name.is_empty() {
        message.text(thread::NAME, &of.name);
    }
    message.uint(thread::PID, of.pid.get().into());
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
