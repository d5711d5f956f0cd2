//! Processes that a user names: by id, or by the file name of the image, with their children.

use std::collections::BTreeSet;

use etl_format::read::{Order, Source, Trace};
use etl_format::{ProcessId, ThreadId, Ticks, parse_number};
use foldhash::HashMap;

use crate::keys::ProcessIndex;
use crate::machine::{Holders, Machine, Process};
use crate::owner::owner;
use crate::run::Recording;
use crate::{Error, Result};

/// Selects processes of a machine.
///
/// ```
/// use etl_analysis::{Machine, ProcessSelector, UnknownProcess};
///
/// /// The processes `Orders.exe`, and the processes that they started.
/// fn orders(machine: &Machine) -> Result<Vec<&str>, UnknownProcess> {
///     let selected = ProcessSelector::new(["Orders"]).with_children().select(machine)?;
///     let processes = selected.iter().filter_map(|&index| machine.process(index));
///     Ok(processes.map(|process| process.name()).collect())
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSelector {
    names: Vec<String>,
    children: bool,
    /// Whether one name that selects a process is enough.
    any: bool,
    /// Ids that events have, and no process of the machine.
    others: BTreeSet<ProcessId>,
}

/// The time in which a process has its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// The id.
    pub pid: ProcessId,
    /// The timestamp from which on the process has it; `None` for the beginning of the trace.
    pub from: Option<Ticks>,
    /// The timestamp from which on another process has it.
    pub to: Option<Ticks>,
}

impl Life {
    fn is_empty(&self) -> bool {
        match (self.from, self.to) {
            (Some(from), Some(to)) => to <= from,
            _ => false,
        }
    }

    /// Whether a later life with the same id begins before this one ends, or when it ends.
    fn reaches(&self, later: &Life) -> bool {
        self.pid == later.pid && self.to.is_none_or(|to| later.from <= Some(to))
    }

    /// Whether the process has an id at a time.
    #[must_use]
    pub fn has(&self, pid: ProcessId, time: Ticks) -> bool {
        self.pid == pid
            && self.from.is_none_or(|from| from <= time)
            && self.to.is_none_or(|to| time < to)
    }
}

/// The ids of processes, and the times in which the processes have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives(
    /// By id and time; lives with one id neither overlap nor touch.
    Vec<Life>,
);

impl Lives {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the processes has an id at any time.
    #[must_use]
    pub fn ever(&self, pid: ProcessId) -> bool {
        self.0.binary_search_by_key(&pid, |life| life.pid).is_ok()
    }

    /// Whether one of the processes has an id at a time.
    #[must_use]
    pub fn has(&self, pid: ProcessId, time: Ticks) -> bool {
        let after = self
            .0
            .partition_point(|life| (life.pid, life.from) <= (pid, Some(time)));
        let last = after.checked_sub(1).and_then(|index| self.0.get(index));
        last.is_some_and(|life| life.has(pid, time))
    }
}

impl FromIterator<Life> for Lives {
    fn from_iter<T: IntoIterator<Item = Life>>(lives: T) -> Self {
        let mut all = Lives::default();
        all.extend(lives);
        all
    }
}

impl IntoIterator for Lives {
    type Item = Life;
    type IntoIter = std::vec::IntoIter<Life>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<Life> for Lives {
    fn extend<T: IntoIterator<Item = Life>>(&mut self, lives: T) {
        let mut all = std::mem::take(&mut self.0);
        all.extend(lives.into_iter().filter(|life| !life.is_empty()));
        all.sort_unstable();
        for life in all {
            match self.0.last_mut() {
                Some(last) if last.reaches(&life) => {
                    last.to = match (last.to, life.to) {
                        (Some(last), Some(to)) => Some(last.max(to)),
                        _ => None,
                    };
                }
                _ => self.0.push(life),
            }
        }
    }
}

/// Names of processes that an error lists.
const MAX_NEAREST: usize = 3;

/// Letters that the beginnings of similar names have in common.
const SIMILAR_LETTERS: usize = 3;

/// No process has this id or name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no process of the trace is {name:?}{}", listed(nearest))]
#[non_exhaustive]
pub struct UnknownProcess {
    /// The id or the name.
    pub name: String,
    /// The names of processes that are most like it, at most three.
    pub nearest: Vec<String>,
}

impl UnknownProcess {
    fn new(name: &str, processes: &[Process]) -> Self {
        let mut names: BTreeSet<&str> = processes.iter().map(Process::name).collect();
        names.remove("");
        let wanted = name.trim_matches('*').to_lowercase();
        let mut nearest: Vec<String> = Vec::new();
        // Names that contain it or are part of it come first.
        for is_similar in [contains, begins_alike] {
            for &other in &names {
                let is_listed = nearest.iter().any(|listed| listed == other);
                if !is_listed && is_similar(&wanted, &other.to_lowercase()) {
                    nearest.push(other.to_owned());
                }
            }
        }
        nearest.truncate(MAX_NEAREST);
        UnknownProcess {
            name: name.to_owned(),
            nearest,
        }
    }
}

/// Whether one of two names is part of the other.
fn contains(wanted: &str, other: &str) -> bool {
    !wanted.is_empty() && (other.contains(wanted) || wanted.contains(other))
}

/// Whether two names begin with the same letters.
fn begins_alike(wanted: &str, other: &str) -> bool {
    let letters = wanted.chars().zip(other.chars());
    letters.take_while(|(a, b)| a == b).count() >= SIMILAR_LETTERS
}

/// The nearest names, as the end of a message.
fn listed(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [one] => format!("; the nearest name: {one}"),
        several => format!("; the nearest names: {}", several.join(", ")),
    }
}

impl ProcessSelector {
    /// Selects the processes with these ids or file names. Names are compared without case, `.exe`
    /// may be left out, and `*` is any characters: `Test*`.
    pub fn new<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        let names = names.into_iter();
        ProcessSelector {
            names: names.map(|name| name.as_ref().to_owned()).collect(),
            ..ProcessSelector::default()
        }
    }

    /// Also selects child processes, recursively.
    #[must_use]
    pub fn with_children(self) -> Self {
        ProcessSelector {
            children: true,
            ..self
        }
    }

    /// Ignores names that select no process, unless no name selects one: a program may have another
    /// name in another recording.
    #[must_use]
    pub fn with_any(self) -> Self {
        ProcessSelector { any: true, ..self }
    }

    /// The names that select no process of a machine, and no id that only events have.
    #[must_use]
    pub fn unknown_names(&self, machine: &Machine) -> Vec<&str> {
        let mut unknown = Vec::new();
        for name in &self.names {
            let is_known = matching(name, machine.processes()).next().is_some();
            if !is_known && !self.is_other(name) {
                unknown.push(name.as_str());
            }
        }
        unknown
    }

    /// Whether no process is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The ids and names that were passed to [`ProcessSelector::new`].
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Also selects ids that no process of the machine has, but events do: not every recording has
    /// events about processes. Such an id is selected for the whole recording. Events are read only
    /// if there are such ids, and only until each is found.
    ///
    /// # Errors
    /// When the recording cannot be read.
    pub fn find_others<S: Source>(
        mut self,
        machine: &Machine,
        recording: &mut Recording<S>,
    ) -> Result<Self> {
        let mut wanted = self.ids_without_process(machine.processes());
        for (index, file) in recording.files_mut().iter_mut().enumerate() {
            if wanted.is_empty() {
                break;
            }
            let found = find_ids(&mut file.trace, &mut wanted);
            let found = found.map_err(|error| Error::new(index, &file.name, error))?;
            self.others.extend(found);
        }
        Ok(self)
    }

    /// The named ids that no process has and that are not selected yet.
    fn ids_without_process(&self, processes: &[Process]) -> BTreeSet<ProcessId> {
        let mut ids = BTreeSet::new();
        for name in &self.names {
            if matching(name, processes).next().is_none()
                && let Some(id) = parse_number(name)
            {
                ids.insert(ProcessId::new(id));
            }
        }
        ids.retain(|id| !self.others.contains(id));
        ids
    }

    /// The selected processes. An id that only events have selects none.
    ///
    /// # Errors
    /// When a name selects no process.
    pub fn select(&self, machine: &Machine) -> Result<BTreeSet<ProcessIndex>, UnknownProcess> {
        self.select_of(machine.processes())
    }

    /// When the selected processes have their ids: an id may be used again.
    ///
    /// # Errors
    /// When a name selects no process.
    pub fn lives(&self, machine: &Machine) -> Result<Lives, UnknownProcess> {
        Ok(self.lives_of(machine.processes())?.into_iter().collect())
    }

    /// Ids of the threads that belong to selected processes as long as no event has named the
    /// process of the thread ([`Machine::first_process_of_thread`]).
    ///
    /// # Errors
    /// When a name selects no process.
    pub fn first_threads(&self, machine: &Machine) -> Result<BTreeSet<ThreadId>, UnknownProcess> {
        let selected = self.select(machine)?;
        let threads = machine.threads().iter().map(|thread| thread.tid);
        let mut first_threads = BTreeSet::new();
        for tid in threads.chain([ThreadId::new(0)]) {
            if let Some(process) = machine.first_process_of_thread(tid)
                && selected.contains(&process)
            {
                first_threads.insert(tid);
            }
        }
        Ok(first_threads)
    }

    fn lives_of(&self, processes: &[Process]) -> Result<Vec<Life>, UnknownProcess> {
        let selected = self.select_of(processes)?;
        let mut lives = Vec::new();
        for (pid, holders) in by_id(processes) {
            // The first process has the id from the beginning, and each until the next one starts.
            let mut from = None;
            for (index, &process) in holders.iter().enumerate() {
                let next = holders.get(index + 1);
                let to = next.and_then(|&next| start_of(processes, next));
                if selected.contains(&process) {
                    lives.push(Life { pid, from, to });
                }
                from = to;
            }
        }
        for &pid in &self.others {
            lives.push(Life {
                pid,
                from: None,
                to: None,
            });
        }
        lives.sort_unstable();
        Ok(lives)
    }

    fn select_of(&self, processes: &[Process]) -> Result<BTreeSet<ProcessIndex>, UnknownProcess> {
        let mut selected = BTreeSet::new();
        let mut unknown = Vec::new();
        for name in &self.names {
            let mut named = matching(name, processes).peekable();
            if named.peek().is_none() && !self.is_other(name) {
                unknown.push(name);
            }
            selected.extend(named);
        }
        if let Some(&name) = unknown.first()
            && (!self.any || unknown.len() == self.names.len())
        {
            return Err(UnknownProcess::new(name, processes));
        }
        if self.children {
            add_children(processes, &mut selected);
        }
        Ok(selected)
    }

    /// Whether a name is an id that only events have.
    fn is_other(&self, name: &str) -> bool {
        match parse_number(name) {
            Some(id) => self.others.contains(&ProcessId::new(id)),
            None => false,
        }
    }
}

/// Reads a trace until it has found events with each of these ids. Removes the ids that it found.
fn find_ids<S: Source>(
    trace: &mut Trace<S>,
    wanted: &mut BTreeSet<ProcessId>,
) -> etl_format::Result<Vec<ProcessId>> {
    let mut found = Vec::new();
    let mut records = trace.records(Order::File)?;
    while !wanted.is_empty()
        && let Some(record) = records.next_record()?
    {
        if !record.is_stale()
            && let Some(pid) = owner(&record).process_id
            && wanted.remove(&pid)
        {
            found.push(pid);
        }
    }
    Ok(found)
}

/// The processes with an id or a file name.
fn matching(name: &str, processes: &[Process]) -> impl Iterator<Item = ProcessIndex> {
    let id = parse_number::<u32>(name);
    let processes = processes.iter().enumerate();
    let named = processes.filter(move |(_, process)| {
        id == Some(process.pid().get()) || is_name(name, process.name())
    });
    named.map(|(index, _)| ProcessIndex::new(index))
}

const EXE: &str = ".exe";

/// Whether a user names a file, with or without `.exe`.
fn is_name(name: &str, file: &str) -> bool {
    let end = file.len().saturating_sub(EXE.len());
    let stem = match file.split_at_checked(end) {
        Some((stem, extension)) if extension.eq_ignore_ascii_case(EXE) => stem,
        _ => file,
    };
    !file.is_empty() && (is_same_name(name, file) || is_same_name(name, stem))
}

/// Whether a file name is the name that a user wrote, case-insensitively. `*` is any characters.
fn is_same_name(a: &str, b: &str) -> bool {
    if a.contains('*') {
        return is_like(&a.to_lowercase(), &b.to_lowercase());
    }
    a.eq_ignore_ascii_case(b) || a.to_lowercase() == b.to_lowercase()
}

/// Whether a text is like a pattern, in which `*` is any characters.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(index) = rest.find(part) else {
            return false;
        };
        rest = rest.get(index + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// When a process started.
fn start_of(processes: &[Process], index: ProcessIndex) -> Option<Ticks> {
    processes.get(index.get()).and_then(Process::started)
}

/// The processes with each id, in the order in which they started.
fn by_id(processes: &[Process]) -> HashMap<ProcessId, Vec<ProcessIndex>> {
    let mut by_id: HashMap<ProcessId, Vec<ProcessIndex>> = HashMap::default();
    for (index, process) in processes.iter().enumerate() {
        by_id
            .entry(process.pid())
            .or_default()
            .push(ProcessIndex::new(index));
    }
    for holders in by_id.values_mut() {
        holders.sort_by_key(|&index| start_of(processes, index));
    }
    by_id
}

/// Adds the children of the selected processes, and theirs.
fn add_children(processes: &[Process], selected: &mut BTreeSet<ProcessIndex>) {
    let mut children: HashMap<ProcessIndex, Vec<ProcessIndex>> = HashMap::default();
    for (index, parent) in parents(processes).into_iter().enumerate() {
        if let Some(parent) = parent {
            let children = children.entry(parent).or_default();
            children.push(ProcessIndex::new(index));
        }
    }
    let mut unseen: Vec<ProcessIndex> = selected.iter().copied().collect();
    while let Some(parent) = unseen.pop() {
        let new = children.remove(&parent).unwrap_or_default();
        unseen.extend(new.into_iter().filter(|&child| selected.insert(child)));
    }
}

impl Machine {
    /// For each process the process that started it, if the recording shows it.
    #[must_use]
    pub fn parents(&self) -> Vec<Option<ProcessIndex>> {
        parents(self.processes())
    }
}

fn parents(processes: &[Process]) -> Vec<Option<ProcessIndex>> {
    let holders = Holders::new(processes.iter().map(|p| (p.pid(), p.started())));
    let mut parents = Vec::with_capacity(processes.len());
    for (index, process) in processes.iter().enumerate() {
        let parent = parent_of(index, process, &holders);
        let parent = parent.filter(|&parent| {
            let parent = processes.get(parent);
            parent.is_some_and(|parent| was_alive(parent, process))
        });
        parents.push(parent.map(ProcessIndex::new));
    }
    parents
}

/// The index of the process that had the id of the parent of a process when the process started.
fn parent_of(index: usize, process: &Process, holders: &Holders<ProcessId>) -> Option<usize> {
    let id = process.parent_pid()?;
    let time = process.started().unwrap_or(Ticks::MIN);
    if let Some(parent) = holders.begun(id, time)
        && parent != index
    {
        return Some(parent);
    }
    // The process itself may have the id of its parent from its start on.
    let before = holders.begun(id, time.checked_add(-1)?)?;
    if before == index { None } else { Some(before) }
}

/// Whether a process had started, and had not ended, when another process started.
fn was_alive(parent: &Process, child: &Process) -> bool {
    // Before the recording, the order of the kernel's list decides: the parent may have ended, and
    // its id be the id of a later process.
    if child.started().is_none()
        && let Some(parent_place) = parent.listed().place
        && let Some(child_place) = child.listed().place
        && child_place < parent_place
    {
        return false;
    }
    match (parent.ended(), child.started()) {
        (Some(ended), Some(started)) => started <= ended,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: ProcessId, name: &str, parent: ProcessId, started: Option<Ticks>) -> Process {
        Process {
            pid,
            name: name.to_owned(),
            parent_pid: Some(parent),
            started,
            ..Process::default()
        }
    }

    fn select(processes: &[Process], names: &[&str], children: bool) -> Vec<usize> {
        let mut selector = ProcessSelector::new(names.iter().copied());
        if children {
            selector = selector.with_children();
        }
        let selected = selector.select_of(processes).unwrap();
        selected.into_iter().map(ProcessIndex::get).collect()
    }

    #[test]
    fn select_finds_names_and_ids() {
        let all = [
            process(ProcessId::new(4), "System", ProcessId::new(0), None),
            process(ProcessId::new(0x20), "App.EXE", ProcessId::new(4), None),
        ];
        for name in ["app", "APP.exe", "32", "0x20"] {
            assert_eq!(select(&all, &[name], false), [1], "{name}");
        }
        assert_eq!(select(&all, &["system", "app"], false), [0, 1]);
        assert_eq!(
            select(&all, &["app", "32"], false),
            [1],
            "two names of one process"
        );
        for name in ["ap", "5", "", ".exe"] {
            let error = ProcessSelector::new([name]).select_of(&all).unwrap_err();
            assert_eq!(error.name, name);
        }
    }

    #[test]
    fn select_finds_names_like_a_pattern_and_lists_the_nearest() {
        let names = ["Test.x64.exe", "test.x86.exe", "Tester.exe", "svchost.exe"];
        let mut all = Vec::new();
        for (pid, name) in (1..).zip(names) {
            all.push(process(
                ProcessId::new(4 * pid),
                name,
                ProcessId::new(0),
                None,
            ));
        }
        for (pattern, selected) in [
            ("Test*", &[0, 1, 2][..]),
            ("*x86", &[1]),
            ("t*.x*4.exe", &[0]),
            ("*", &[0, 1, 2, 3]),
        ] {
            assert_eq!(select(&all, &[pattern], false), selected, "{pattern}");
        }
        let nearest = |name: &str| {
            let error = ProcessSelector::new([name]).select_of(&all).unwrap_err();
            error.to_string()
        };
        let unknown = "no process of the trace is";
        assert_eq!(
            nearest("Test"),
            format!(
                "{unknown} \"Test\"; the nearest names: Test.x64.exe, Tester.exe, test.x86.exe"
            )
        );
        assert_eq!(
            nearest("svc*x"),
            format!("{unknown} \"svc*x\"; the nearest name: svchost.exe")
        );
        assert_eq!(nearest("Orders"), format!("{unknown} \"Orders\""));
    }

    #[test]
    fn lists_tell_parents_from_later_processes_with_their_ids() {
        let listed = |pid, parent, place| {
            let mut process = process(ProcessId::new(pid), "", ProcessId::new(parent), None);
            process.listed.place = Some(place);
            process
        };
        // The parent of the second process ended, and the last process has its id.
        let all = [listed(4, 0, 1), listed(8, 12, 2), listed(12, 4, 3)];
        let system = Some(ProcessIndex::new(0));
        assert_eq!(parents(&all), [None, None, system]);
    }

    #[test]
    fn ids_known_only_from_events_select_the_whole_recording() {
        let all = [process(
            ProcessId::new(4),
            "System",
            ProcessId::new(0),
            None,
        )];
        let selector = ProcessSelector::new(["9", "system"]);
        assert_eq!(
            selector.select_of(&all),
            Err(UnknownProcess::new("9", &all))
        );
        let selector = ProcessSelector {
            others: [ProcessId::new(9)].into(),
            ..selector
        };
        assert_eq!(
            selector.select_of(&all).unwrap(),
            [ProcessIndex::new(0)].into()
        );
        let lives = selector.lives_of(&all).unwrap();
        assert_eq!(
            lives,
            [4, 9].map(|pid| Life {
                pid: ProcessId::new(pid),
                from: None,
                to: None
            })
        );
    }

    #[test]
    fn select_adds_children_of_the_right_parent() {
        let mut first = process(ProcessId::new(8), "build", ProcessId::new(4), None);
        first.ended = Some(Ticks::new(50));
        let all = [
            process(ProcessId::new(4), "System", ProcessId::new(0), None),
            first,
            process(
                ProcessId::new(9),
                "early",
                ProcessId::new(8),
                Some(Ticks::new(10)),
            ),
            process(
                ProcessId::new(8),
                "other",
                ProcessId::new(4),
                Some(Ticks::new(60)),
            ),
            process(
                ProcessId::new(10),
                "late",
                ProcessId::new(8),
                Some(Ticks::new(70)),
            ),
            process(
                ProcessId::new(11),
                "leaf",
                ProcessId::new(9),
                Some(Ticks::new(80)),
            ),
            // The id of the parent is free at this time.
            process(
                ProcessId::new(12),
                "orphan",
                ProcessId::new(8),
                Some(Ticks::new(55)),
            ),
        ];
        assert_eq!(select(&all, &["build"], true), [1, 2, 5]);
        assert_eq!(select(&all, &["other"], true), [3, 4]);
        assert_eq!(select(&all, &["build"], false), [1]);
    }

    #[test]
    fn lives_end_where_an_id_is_used_again() {
        let all = [
            process(ProcessId::new(8), "first", ProcessId::new(4), None),
            process(
                ProcessId::new(8),
                "second",
                ProcessId::new(4),
                Some(Ticks::new(60)),
            ),
        ];
        let lives = |name| ProcessSelector::new([name]).lives_of(&all).unwrap();
        assert_eq!(
            lives("first"),
            [Life {
                pid: ProcessId::new(8),
                from: None,
                to: Some(Ticks::new(60))
            }]
        );
        assert_eq!(
            lives("second"),
            [Life {
                pid: ProcessId::new(8),
                from: Some(Ticks::new(60)),
                to: None
            }]
        );
        let both = lives("8");
        let first = |time| both[0].has(ProcessId::new(8), time);
        assert_eq!([59, 60].map(Ticks::new).map(first), [true, false]);
        assert!(
            both[1].has(ProcessId::new(8), Ticks::new(60))
                && !both[1].has(ProcessId::new(9), Ticks::new(60))
        );
    }

    #[test]
    fn lives_are_found_among_all() {
        let life = |pid, from, to| Life { pid, from, to };
        let all = [
            life(
                ProcessId::new(8),
                Some(Ticks::new(60)),
                Some(Ticks::new(70)),
            ),
            life(ProcessId::new(8), None, Some(Ticks::new(20))),
            life(ProcessId::new(4), Some(Ticks::new(10)), None),
            // They overlap, as lives of several traces do.
            life(
                ProcessId::new(8),
                Some(Ticks::new(65)),
                Some(Ticks::new(90)),
            ),
            life(
                ProcessId::new(8),
                Some(Ticks::new(66)),
                Some(Ticks::new(67)),
            ),
            life(
                ProcessId::new(8),
                Some(Ticks::new(100)),
                Some(Ticks::new(95)),
            ),
            life(ProcessId::new(9), Some(Ticks::new(1)), Some(Ticks::new(5))),
            life(ProcessId::new(9), Some(Ticks::new(3)), None),
        ];
        let lives: Lives = all.into_iter().collect();
        for pid in 3..11 {
            for time in [
                i64::MIN,
                0,
                3,
                5,
                9,
                10,
                19,
                20,
                60,
                66,
                70,
                89,
                90,
                97,
                100,
                i64::MAX,
            ] {
                let time = Ticks::new(time);
                let has = all.iter().any(|life| life.has(ProcessId::new(pid), time));
                assert_eq!(lives.has(ProcessId::new(pid), time), has, "{pid} at {time}");
            }
            assert_eq!(
                lives.ever(ProcessId::new(pid)),
                all.iter().any(|life| life.pid == pid),
                "{pid}"
            );
        }
        let kept = [
            life(ProcessId::new(4), Some(Ticks::new(10)), None),
            life(ProcessId::new(8), None, Some(Ticks::new(20))),
            life(
                ProcessId::new(8),
                Some(Ticks::new(60)),
                Some(Ticks::new(90)),
            ),
        ];
        assert_eq!(lives.0[..3], kept);
    }

    #[test]
    fn select_ends_for_processes_that_are_their_own_parents() {
        let all = [
            process(ProcessId::new(1), "a", ProcessId::new(2), None),
            process(ProcessId::new(2), "b", ProcessId::new(1), None),
            process(ProcessId::new(3), "c", ProcessId::new(3), None),
        ];
        assert_eq!(select(&all, &["a"], true), [0, 1]);
        assert_eq!(select(&all, &["c"], true), [2]);
    }
}
