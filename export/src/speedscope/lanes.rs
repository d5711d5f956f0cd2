//! Activities in lanes: activities of a lane that are open at the same time are nested.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use etl_analysis::behavior::activities::{Activities, Activity};
use etl_analysis::profile::ProfileOptions;
use etl_analysis::{Machine, ProcessIndex};
use etl_format::{Guid, ThreadId, Ticks, TimeRange};
use foldhash::HashMap;

/// The start or the stop of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub is_start: bool,
    /// The number of the activity's name in [`Activities`].
    pub name: u32,
    pub time: Ticks,
}

/// The process of activities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    /// The process in the machine, if it is known.
    pub process: Option<ProcessIndex>,
    pub pid: u32,
}

/// Activities that may be nested in each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Group {
    /// Those with this activity id.
    Id(Guid),
    /// Those of a thread that have no activity id.
    Thread(Option<ThreadId>),
}

impl Group {
    fn of(activity: &Activity) -> Self {
        if activity.id == Guid::ZERO {
            Group::Thread(activity.tid)
        } else {
            Group::Id(activity.id)
        }
    }
}

/// Activities of a process; each is within the one around it.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub process: Owner,
    pub events: Vec<Event>,
    open: Vec<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    group: Group,
    name: u32,
    until: Ticks,
}

impl Lane {
    /// Ends the activities that stopped at or before a time.
    fn advance(&mut self, time: Ticks) {
        while let Some(open) = self.open.pop_if(|open| open.until <= time) {
            self.events.push(Event {
                is_start: false,
                name: open.name,
                time: open.until,
            });
        }
    }

    /// Whether an activity is within the innermost open one, which has to be its parent or have the
    /// same id.
    fn can_nest(&self, activity: &Activity, until: Ticks) -> bool {
        self.open.last().is_some_and(|open| {
            let is_around = [Group::Id(activity.parent), Group::of(activity)].contains(&open.group);
            is_around && until <= open.until
        })
    }

    fn start(&mut self, activity: &Activity, until: Ticks) {
        self.events.push(Event {
            is_start: true,
            name: activity.name,
            time: activity.started,
        });
        self.open.push(Open {
            group: Group::of(activity),
            name: activity.name,
            until,
        });
    }
}

/// The lanes of a process.
#[derive(Debug, Default)]
struct ProcessLanes {
    lanes: Vec<Lane>,
    /// Lanes in which nothing is open.
    free: BTreeSet<usize>,
    /// When the other lanes become free.
    busy: BinaryHeap<Reverse<(Ticks, usize)>>,
    /// The lane of the last activity of a group.
    lanes_by_group: HashMap<Group, usize>,
}

impl ProcessLanes {
    fn add(&mut self, activity: &Activity, until: Ticks) {
        while let Some(&Reverse((time, lane))) = self.busy.peek() {
            if time > activity.started {
                break;
            }
            self.busy.pop();
            self.free.insert(lane);
        }
        let group = Group::of(activity);
        for around in [Group::Id(activity.parent), group] {
            let Some(&index) = self.lanes_by_group.get(&around) else {
                continue;
            };
            let Some(lane) = self.lanes.get_mut(index) else {
                continue;
            };
            lane.advance(activity.started);
            if lane.can_nest(activity, until) {
                lane.start(activity, until);
                self.lanes_by_group.insert(group, index);
                return;
            }
        }
        let index = match self.free.pop_first() {
            Some(index) => index,
            None => {
                self.lanes.push(Lane {
                    process: owner_of(activity),
                    ..Lane::default()
                });
                self.lanes.len() - 1
            }
        };
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.advance(activity.started);
            lane.start(activity, until);
        }
        self.busy.push(Reverse((until, index)));
        self.lanes_by_group.insert(group, index);
    }
}

/// The lanes of the selected activities. Activities without a stop end with the recording.
pub(super) fn lanes(
    activities: &Activities,
    machine: &Machine,
    options: &ProfileOptions,
    range: TimeRange,
) -> Vec<Lane> {
    let end = machine.span().map_or(Ticks::MAX, |span| span.last);
    let mut processes: BTreeMap<Owner, ProcessLanes> = BTreeMap::new();
    for activity in activities.list() {
        if !range.contains(activity.started) {
            continue;
        }
        let tid = activity.tid.unwrap_or(ThreadId::new(u32::MAX));
        if options.admits(activity.process, Some(activity.pid), tid) {
            let until = activity.stopped.unwrap_or(end).max(activity.started);
            let process = processes.entry(owner_of(activity)).or_default();
            process.add(activity, until);
        }
    }
    let mut lanes: Vec<Lane> = processes
        .into_values()
        .flat_map(|process| process.lanes)
        .collect();
    lanes.iter_mut().for_each(|lane| lane.advance(Ticks::MAX));
    lanes
}

fn owner_of(activity: &Activity) -> Owner {
    Owner {
        process: activity.process,
        pid: activity.pid.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of activities by number.
    fn id(number: u8) -> Guid {
        Guid::from_bytes([number; 16])
    }

    /// Number, number of the parent, start and stop; returns starts and stops of each lane.
    fn placed(activities: &[(u8, u8, i64, i64)]) -> Vec<String> {
        let mut all = ProcessLanes::default();
        for &(number, parent, started, until) in activities {
            let activity = Activity::new(
                id(number),
                id(parent),
                u32::from(number),
                Ticks::new(started),
            );
            all.add(&activity, Ticks::new(until));
        }
        let mut texts = Vec::new();
        for mut lane in all.lanes {
            lane.advance(Ticks::MAX);
            assert!(lane.events.is_sorted_by_key(|event| event.time));
            let text = |e: &Event| format!("{}{}", if e.is_start { '+' } else { '-' }, e.name);
            texts.push(lane.events.iter().map(text).collect::<Vec<_>>().join(" "));
        }
        texts
    }

    #[test]
    fn activity_is_nested_only_in_its_parent() {
        let nested = [(1, 0, 0, 10), (2, 1, 1, 5), (3, 2, 2, 4), (4, 1, 6, 10)];
        assert_eq!(placed(&nested), ["+1 +2 +3 -3 -2 +4 -4 -1"]);
        // Not a child of the activity around it, or longer than its parent.
        assert_eq!(placed(&[(1, 0, 0, 10), (2, 9, 1, 5)]), ["+1 -1", "+2 -2"]);
        assert_eq!(placed(&[(1, 0, 0, 10), (2, 1, 1, 11)]), ["+1 -1", "+2 -2"]);
        // Lanes are used again, and events of two tasks may have one id.
        assert_eq!(placed(&[(1, 0, 0, 3), (2, 0, 3, 4)]), ["+1 -1 +2 -2"]);
        assert_eq!(placed(&[(1, 0, 0, 3), (1, 0, 1, 2)]), ["+1 +1 -1 -1"]);
        assert_eq!(placed(&[(1, 0, 5, 5), (2, 1, 5, 5)]), ["+1 -1 +2 -2"]);
    }
}
