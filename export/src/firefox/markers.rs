//! Markers: events of a thread at a time or over an interval.

use etl_format::{ProcessId, ThreadId, Ticks};
use std::io::{self, Write};

use etl_analysis::Machine;
use etl_analysis::behavior::activities::ActivityName;
use etl_analysis::behavior::occurrences::Occurred;
use etl_analysis::profile::{Profile, ProfileOptions};
use foldhash::HashMap;
use serde_json::{Map, Value, json};

use super::categories::Category;
use super::json::Json;
use super::tables::{Texts, stack_of};
use super::times::{Times, to_millis};
use super::{Collector, ThreadKey};

/// The list of the collector that has what a marker shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Collection,
    Pause,
    Compilation,
    Occurrence,
    Activity,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Marker {
    pub thread: ThreadKey,
    since: Ticks,
    /// `None` if the end is not recorded.
    until: Option<Ticks>,
    subject: Subject,
    index: u32,
}

/// Markers of an instant, of an interval, and of one without an end.
const INSTANT: u64 = 0;
const INTERVAL: u64 = 1;
const BEGUN: u64 = 2;

impl Marker {
    fn phase(&self) -> u64 {
        match self.until {
            Some(until) if until > self.since => INTERVAL,
            Some(_) => INSTANT,
            None => BEGUN,
        }
    }
}

/// The markers of the selected threads and times, by thread and time.
pub(super) fn markers(
    collected: &Collector,
    machine: &Machine,
    options: &ProfileOptions,
) -> Vec<Marker> {
    let mut markers = all_markers(collected);
    markers.retain(|marker| {
        let (index, tid) = marker.thread;
        let process = index.and_then(|index| machine.process(index));
        let pid = process.map(|process| process.pid());
        options.admits(index, pid, tid.unwrap_or(ThreadId::UNKNOWN))
            && collected.range.contains(marker.since)
    });
    markers.sort_unstable_by_key(|m| (m.thread, m.since, m.subject, m.index));
    markers
}

/// The markers of all threads and times.
fn all_markers(collected: &Collector) -> Vec<Marker> {
    let mut markers = Vec::new();
    for (index, gc) in collected.collections.list().iter().enumerate() {
        markers.push(Marker {
            thread: (Some(gc.process), gc.tid),
            since: gc.started,
            until: gc.ended,
            subject: Subject::Collection,
            index: index as u32,
        });
    }
    for (index, pause) in collected.collections.pauses().iter().enumerate() {
        markers.push(Marker {
            thread: (Some(pause.process), pause.tid),
            since: pause.since,
            until: Some(pause.until),
            subject: Subject::Pause,
            index: index as u32,
        });
    }
    for (index, compilation) in collected.compilations.list().iter().enumerate() {
        let duration = compilation
            .duration
            .and_then(|ticks| i64::try_from(ticks).ok());
        markers.push(Marker {
            thread: (Some(compilation.process), compilation.tid),
            since: compilation.loaded.saturating_add(-duration.unwrap_or(0)),
            until: Some(compilation.loaded),
            subject: Subject::Compilation,
            index: index as u32,
        });
    }
    for (index, occurrence) in collected.occurrences.list().iter().enumerate() {
        markers.push(Marker {
            thread: (Some(occurrence.process), occurrence.tid),
            since: occurrence.since,
            until: Some(occurrence.until),
            subject: Subject::Occurrence,
            index: index as u32,
        });
    }
    for (index, activity) in collected.activities.list().iter().enumerate() {
        markers.push(Marker {
            thread: (activity.process, activity.tid),
            since: activity.started,
            until: activity.stopped,
            subject: Subject::Activity,
            index: index as u32,
        });
    }
    markers
}

/// Describes markers for the table.
pub(super) struct Describer<'a> {
    collected: &'a Collector,
    times: &'a Times,
    machine: &'a Machine,
    profile: &'a Profile,
    /// Paths of images by process, first address and time of the load.
    images: HashMap<(ProcessId, u64, Ticks), &'a str>,
    /// Names of activities, by the number of the name.
    activities: HashMap<u32, ActivityName>,
}

impl<'a> Describer<'a> {
    pub fn new(
        collected: &'a Collector,
        machine: &'a Machine,
        profile: &'a Profile,
        times: &'a Times,
    ) -> Self {
        let loaded = machine.image_lives().filter_map(|life| {
            let pid = machine.process(life.process)?.pid();
            Some(((pid, life.start, life.loaded?), life.path))
        });
        let mut activities = HashMap::default();
        for activity in collected.activities.list() {
            let number = activity.name;
            activities
                .entry(number)
                .or_insert_with(|| collected.activities.name(number));
        }
        Describer {
            collected,
            times,
            machine,
            profile,
            images: loaded.collect(),
            activities,
        }
    }

    /// Name, category and data of a marker.
    fn describe(&self, marker: &Marker, texts: &mut Texts) -> Option<(&str, Category, Value)> {
        let index = marker.index as usize;
        let mut data = Map::new();
        let (name, category) = match marker.subject {
            Subject::Collection => {
                self.collection(index, &mut data, texts)?;
                ("GC", Category::Gc)
            }
            Subject::Pause => {
                let pause = self.collected.collections.pauses().get(index)?;
                let reason = pause.reason.to_string();
                data.insert("type".into(), "Suspension".into());
                data.insert("reason".into(), texts.number(&reason).into());
                ("Suspension", Category::Gc)
            }
            Subject::Compilation => {
                let compilation = self.collected.compilations.list().get(index)?;
                data.insert("type".into(), "JIT".into());
                data.insert("method".into(), texts.number(&compilation.method).into());
                data.insert("tier".into(), texts.number(compilation.tier_name()).into());
                data.insert("code".into(), compilation.code_size.into());
                if let Some(size) = compilation.il_size {
                    data.insert("il".into(), size.into());
                }
                ("JIT", Category::Compiler)
            }
            Subject::Occurrence => self.occurrence(index, &mut data, texts)?,
            Subject::Activity => {
                let activity = self.collected.activities.list().get(index)?;
                let name = self.activities.get(&activity.name)?;
                data.insert("type".into(), "Activity".into());
                data.insert("provider".into(), texts.number(&name.provider).into());
                data.insert("id".into(), activity.id.to_string().into());
                (&*name.event, Category::Activity)
            }
        };
        Some((name, category, Value::Object(data)))
    }

    fn collection(
        &self,
        index: usize,
        data: &mut Map<String, Value>,
        texts: &mut Texts,
    ) -> Option<()> {
        let collections = &self.collected.collections;
        let gc = collections.list().get(index)?;
        let reason = gc.reason.to_string();
        let kind = gc.kind.to_string();
        data.insert("type".into(), "GC".into());
        data.insert("number".into(), gc.number.into());
        data.insert("generation".into(), gc.generation.into());
        data.insert("reason".into(), texts.number(&reason).into());
        data.insert("kind".into(), texts.number(&kind).into());
        data.insert("pauses".into(), gc.pauses.into());
        data.insert("pause".into(), json!(self.times.millis(gc.paused)));
        if let Some(allocated) = collections.allocated(gc) {
            data.insert("allocated".into(), allocated.into());
        }
        if let Some(promoted) = gc.promoted {
            data.insert("promoted".into(), promoted.into());
        }
        if let Some(size) = gc.heap_size() {
            data.insert("heap".into(), size.into());
        }
        Some(())
    }

    fn occurrence(
        &self,
        index: usize,
        data: &mut Map<String, Value>,
        texts: &mut Texts,
    ) -> Option<(&'static str, Category)> {
        let occurrences = &self.collected.occurrences;
        let occurrence = occurrences.list().get(index)?;
        let (kind, name, category) = match occurrence.what {
            Occurred::Exception { exception, message } => {
                let exception = texts.number(occurrences.text(exception));
                data.insert("exception".into(), exception.into());
                let message = texts.number(occurrences.text(message));
                data.insert("message".into(), message.into());
                ("Exception", "Exception", Category::Runtime)
            }
            Occurred::LockWait { is_native } => {
                let lock = texts.number(if is_native { "native" } else { "managed" });
                data.insert("lock".into(), lock.into());
                ("Contention", "Contention", Category::Runtime)
            }
            Occurred::Module(path) => {
                let file = texts.number(occurrences.text(path));
                data.insert("file".into(), file.into());
                ("Load", "Module load", Category::Loader)
            }
            Occurred::Image(image) => {
                let image = self.machine.images().get(image)?;
                let path = self.images.get(&(image.pid, image.base, occurrence.since));
                let file = texts.number(path.copied().unwrap_or(&image.name));
                data.insert("file".into(), file.into());
                ("Load", "Image load", Category::Loader)
            }
            _ => return None,
        };
        data.insert("type".into(), kind.into());
        if let Some(stack) = self.stack(occurrence.number) {
            let time = to_millis(self.times.since_start(occurrence.since));
            let cause = json!({ "tid": occurrence.tid, "time": time, "stack": stack });
            data.insert("cause".into(), cause);
        }
        Some((name, category))
    }

    /// The stack of an event, by the number of the event.
    fn stack(&self, number: u64) -> Option<u64> {
        let node = self.profile.node_of(*self.collected.stacks.get(&number)?)?;
        let root = self
            .profile
            .roots()
            .partition_point(|root| root.end <= node);
        stack_of(self.profile, root, node)
    }

    /// Writes the table of the markers of a thread.
    pub fn write<W: Write>(
        &self,
        json: &mut Json<W>,
        markers: &[Marker],
        texts: &mut Texts,
    ) -> io::Result<()> {
        let times = self.times;
        let mut rows = Vec::with_capacity(markers.len());
        json.column("data", markers, |out, marker| {
            match self.describe(marker, texts) {
                Some((name, category, data)) => {
                    rows.push((texts.number(name), category));
                    out.value(&data)
                }
                None => {
                    rows.push((texts.number(""), Category::Other));
                    out.raw("null")
                }
            }
        })?;
        json.column("name", &rows, |out, &(name, _)| out.number(name))?;
        json.column("startTime", markers, |out, m| {
            out.millis(times.since_start(m.since))
        })?;
        json.column("endTime", markers, |out, marker| match marker.until {
            Some(until) if marker.phase() == INTERVAL => out.millis(times.since_start(until)),
            _ => out.raw("null"),
        })?;
        json.column("phase", markers, |out, marker| out.number(marker.phase()))?;
        json.column("category", &rows, |out, &(_, category)| {
            out.number(category.index())
        })?;
        json.end(markers.len())
    }
}

/// The schema of a type of marker. Fields have a key, a label and a format.
fn schema(name: &str, label: &str, fields: &[(&str, &str, &str)]) -> Value {
    let mut field_schemas = Vec::new();
    for (key, label, format) in fields {
        field_schemas.push(json!({ "key": key, "label": label, "format": format }));
    }
    json!({
        "name": name,
        "chartLabel": label,
        "tooltipLabel": label,
        "tableLabel": label,
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "fields": field_schemas,
    })
}

/// How the viewer shows each type of marker.
pub(super) fn schemas() -> Value {
    json!([
        schema(
            "GC",
            "GC {marker.data.number}, generation {marker.data.generation}: {marker.data.reason}",
            &[
                ("number", "Number", "integer"),
                ("generation", "Generation", "integer"),
                ("reason", "Reason", "unique-string"),
                ("kind", "Type", "unique-string"),
                ("pauses", "Pauses", "integer"),
                ("pause", "Paused", "duration"),
                ("allocated", "Allocated since the last one", "bytes"),
                ("promoted", "Promoted", "bytes"),
                ("heap", "Heap after it", "bytes"),
            ],
        ),
        schema(
            "Suspension",
            "Threads suspended: {marker.data.reason}",
            &[("reason", "Reason", "unique-string")],
        ),
        schema(
            "JIT",
            "{marker.data.method}",
            &[
                ("method", "Method", "unique-string"),
                ("tier", "Tier", "unique-string"),
                ("il", "IL", "bytes"),
                ("code", "Code", "bytes"),
            ],
        ),
        schema(
            "Exception",
            "{marker.data.exception}",
            &[
                ("exception", "Type", "unique-string"),
                ("message", "Message", "unique-string")
            ],
        ),
        schema(
            "Contention",
            "Waits for a {marker.data.lock} lock",
            &[("lock", "Lock", "unique-string")],
        ),
        schema(
            "Load",
            "{marker.data.file}",
            &[("file", "File", "unique-string")]
        ),
        schema(
            "Activity",
            "{marker.name}",
            &[
                ("provider", "Provider", "unique-string"),
                ("id", "Activity", "string")
            ],
        ),
    ])
}
