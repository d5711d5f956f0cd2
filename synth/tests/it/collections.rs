//! Compares the events of a simulated garbage collection with those of a real one.

use std::collections::BTreeMap;

use etl_format::read::{Options, Order, Trace};
use etl_schema::providers::CLR_RUNTIME;
use etl_synth::truth::InMemoryTruth;
use etl_synth::{MemoryFileSystem, Script, Simulation};
use etl_test_support::{needs, trace};

/// Ids and versions of the events of a collection, from the suspension to the end of the restart.
type Course = Vec<(u16, u8)>;

const BEGINS: u16 = 9;
const ENDS: u16 = 3;

/// Whether an event belongs to the collector, at level 4 under GC alone.
fn is_of_collector(id: u16, level: u8, keyword: u64) -> bool {
    (1..=35).contains(&id) && level <= 4 && keyword & 1 != 0
}

/// What happens most often between the beginning and the end, of the events of one thread.
#[derive(Default)]
struct Courses {
    open: BTreeMap<u32, Course>,
    counts: BTreeMap<Course, u32>,
}

impl Courses {
    fn event(&mut self, thread: u32, id: u16, version: u8) {
        if id == BEGINS {
            self.open.insert(thread, Course::new());
        }
        let Some(course) = self.open.get_mut(&thread) else {
            return;
        };
        course.push((id, version));
        if id == ENDS {
            let course = self.open.remove(&thread).unwrap();
            *self.counts.entry(course).or_default() += 1;
        }
    }

    fn most_often(self) -> (Course, u32) {
        self.counts
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .unwrap()
    }
}

/// A collection of generation 0 of .NET Framework 4.5.2.
fn simulated() -> Course {
    let script = r#"
process "App.exe" { clr "desktop" version="4.5.2" { assembly "A" { module "C:\\A.dll" { methods 9 } } }
    at "2s" { gc 0 } }
at "1s" { session "s" file="s.etl" { enable "runtime" keywords="GC" level=4 } }
at "3s" { stop "s" }
"#;
    let scenario = Script::new("gc", script)
        .parse()
        .unwrap_or_else(|e| panic!("{:#?}", e));
    let mut truth = InMemoryTruth::default();
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut MemoryFileSystem::default())
        .unwrap();
    let mut courses = Courses::default();
    for event in truth.recorded(0) {
        courses.event(
            event.tid.get(),
            event.descriptor.id,
            event.descriptor.version,
        );
    }
    let (course, count) = courses.most_often();
    assert_eq!(count, 1);
    // The finalizer runs after it, on its own thread.
    let of = |id: u16| truth.recorded(0).find(|e| e.descriptor.id == id).unwrap();
    assert!(of(14).tid != of(ENDS).tid && of(14).at > of(ENDS).at && of(13).tid == of(14).tid);
    course
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn simulated_collection_has_the_events_of_a_real_one() {
    let course = simulated();
    let ids: Vec<u16> = course.iter().map(|(id, _)| *id).collect();
    let expected = [
        9, 8, 35, 1, 1, 23, 23, 23, 23, 25, 26, 27, 28, 23, 23, 23, 23, 2, 4, 7, 3,
    ];
    assert_eq!(ids, expected);
    let path = trace("perfview/net.4.5.2.x64.etl");
    let bytes = std::fs::read(path).unwrap();
    let mut trace = Trace::open(&bytes[..], &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut courses = Courses::default();
    while let Some(record) = records.next_record().unwrap() {
        let Some(d) = record
            .descriptor()
            .filter(|_| record.provider() == Some(CLR_RUNTIME))
        else {
            continue;
        };
        if is_of_collector(d.id, d.level, d.keyword) {
            courses.event(record.thread_id().unwrap().get(), d.id, d.version);
        }
    }
    let (real, count) = courses.most_often();
    assert!(count > 100, "{count}");
    assert_eq!(course, real);
}
