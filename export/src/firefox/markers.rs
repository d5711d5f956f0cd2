//! Markers: what happened on a thread, at a time or for some time.

use std::io::{self, Write};

use etl_analysis::Machine;
use etl_analysis::behavior::occurrences::Occurred;
use etl_analysis::profile::{Profile, ProfileOptions};
use foldhash::HashMap;
use serde_json::{Map, Value, json};

use super::categories::Category;
use super::json::Json;
use super::tables::{Texts, stack_of};
use super::times::Times;
use super::{Collector, ThreadKey};

/// What a marker is about: an index in one of the lists of the collector.
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
    since: i64,
    /// `None` where the end is not recorded.
    until: Option<i64>,
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
    let mut markers = Vec::new();
    let mut add = |thread: ThreadKey, since: i64, until, subject, index: usize| {
        let pid = thread.0.and_then(|at| machine.processes().get(at)).map(|process| process.pid());
        let is_selected = options.admits(thread.0, pid, thread.1.unwrap_or(u32::MAX));
        if is_selected && collected.range.contains(since) {
            markers.push(Marker { thread, since, until, subject, index: index as u32 });
        }
    };
    for (at, gc) in collected.collections.list().iter().enumerate() {
        add((Some(gc.process), gc.tid), gc.started, gc.ended, Subject::Collection, at);
    }
    for (at, pause) in collected.collections.pauses().iter().enumerate() {
        let thread = (Some(pause.process), pause.tid);
        add(thread, pause.since, Some(pause.until), Subject::Pause, at);
    }
    for (at, of) in collected.compilations.list().iter().enumerate() {
        let duration = of.duration.and_then(|ticks| i64::try_from(ticks).ok()).unwrap_or(0);
        let since = of.loaded.saturating_sub(duration);
        add((Some(of.process), of.tid), since, Some(of.loaded), Subject::Compilation, at);
    }
    for (at, of) in collected.occurrences.list().iter().enumerate() {
        add((Some(of.process), of.tid), of.since, Some(of.until), Subject::Occurrence, at);
    }
    for (at, activity) in collected.activities.list().iter().enumerate() {
        let thread = (activity.process, activity.tid);
        add(thread, activity.started, activity.stopped, Subject::Activity, at);
    }
    markers.sort_unstable_by_key(|m| (m.thread, m.since, m.subject, m.index));
    markers
}

/// Describes markers for the table.
pub(super) struct Describer<'a> {
    collected: &'a Collector,
    times: &'a Times,
    machine: &'a Machine,
    profile: &'a Profile,
    /// Paths of images by process, first address and time of the load.
    images: HashMap<(u32, u64, i64), &'a str>,
    /// Names of the provider and of the activity, by the number of the name.
    activities: HashMap<u32, (String, String)>,
}

impl<'a> Describer<'a> {
    pub fn new(
        collected: &'a Collector,
        machine: &'a Machine,
        profile: &'a Profile,
        times: &'a Times,
    ) -> Self {
        let loaded = machine.image_lives().filter_map(|life| {
            let pid = machine.processes().get(life.process)?.pid();
            Some(((pid, life.start, life.loaded?), life.path))
        });
        let mut activities = HashMap::default();
        for activity in collected.activities.list() {
            let name = || collected.activities.name(activity.name);
            activities.entry(activity.name).or_insert_with(name);
        }
        Describer { collected, times, machine, profile, images: loaded.collect(), activities }
    }

    /// Name, category and data of a marker.
    fn describe(&self, marker: &Marker, texts: &mut Texts) -> Option<(&str, Category, Value)> {
        let at = marker.index as usize;
        let mut data = Map::new();
        let (name, category) = match marker.subject {
            Subject::Collection => {
                self.collection(at, &mut data, texts)?;
                ("GC", Category::Gc)
            }
            Subject::Pause => {
                let pause = self.collected.collections.pauses().get(at)?;
                let reason = pause.reason.to_string();
                data.insert("type".into(), "Suspension".into());
                data.insert("reason".into(), texts.number(&reason).into());
                ("Suspension", Category::Gc)
            }
            Subject::Compilation => {
                let of = self.collected.compilations.list().get(at)?;
                data.insert("type".into(), "JIT".into());
                data.insert("method".into(), texts.number(&of.method).into());
                data.insert("tier".into(), texts.number(of.tier_name()).into());
                data.insert("code".into(), of.code_size.into());
                if let Some(size) = of.il_size {
                    data.insert("il".into(), size.into());
                }
                ("JIT", Category::Compiler)
            }
            Subject::Occurrence => self.occurrence(at, &mut data, texts)?,
            Subject::Activity => {
                let activity = self.collected.activities.list().get(at)?;
                let (provider, name) = self.activities.get(&activity.name)?;
                data.insert("type".into(), "Activity".into());
                data.insert("provider".into(), texts.number(provider).into());
                data.insert("id".into(), activity.id.to_string().into());
                (name.as_str(), Category::Activity)
            }
        };
        Some((name, category, Value::Object(data)))
    }

    fn collection(
        &self,
        at: usize,
        data: &mut Map<String, Value>,
        texts: &mut Texts,
    ) -> Option<()> {
        let collections = &self.collected.collections;
        let gc = collections.list().get(at)?;
        let reason = gc.reason.to_string();
        let kind = gc.kind.to_string();
        data.insert("type".into(), "GC".into());
        data.insert("number".into(), gc.number.into());
        data.insert("generation".into(), gc.generation.into());
        data.insert("reason".into(), texts.number(&reason).into());
        data.insert("kind".into(), texts.number(&kind).into());
        data.insert("pauses".into(), gc.pauses.into());
        data.insert("pause".into(), json!(self.times.millis(gc.paused)));
        data.insert("allocated".into(), gc.allocated.into());
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
        at: usize,
        data: &mut Map<String, Value>,
        texts: &mut Texts,
    ) -> Option<(&'static str, Category)> {
        let occurrences = &self.collected.occurrences;
        let of = occurrences.list().get(at)?;
        let mut text = |key: &str, text: &str| {
            data.insert(key.into(), texts.number(text).into());
        };
        let (kind, described) = match of.what {
            Occurred::Exception { exception, message } => {
                text("exception", occurrences.text(exception));
                text("message", occurrences.text(message));
                ("Exception", ("Exception", Category::Runtime))
            }
            Occurred::LockWait { is_native } => {
                text("lock", if is_native { "native" } else { "managed" });
                ("Contention", ("Contention", Category::Runtime))
            }
            Occurred::Module(path) => {
                text("file", occurrences.text(path));
                ("Load", ("Module load", Category::Loader))
            }
            Occurred::Image(image) => {
                let image = self.machine.images().get(image)?;
                let key = (image.pid, image.base, of.since);
                text("file", self.images.get(&key).copied().unwrap_or(&image.name));
                ("Load", ("Image load", Category::Loader))
            }
            _ => return None,
        };
        data.insert("type".into(), kind.into());
        if let Some(stack) = self.stack(of.number) {
            let time = self.times.since_start(of.since) as f64 / 1e4;
            data.insert("cause".into(), json!({ "tid": of.tid, "time": time, "stack": stack }));
        }
        Some(described)
    }

    /// Where an event was logged.
    fn stack(&self, number: u64) -> Option<u64> {
        let node = self.profile.node_of(*self.collected.stacks.get(&number)?)?;
        let root = self.profile.roots().partition_point(|root| root.end <= node);
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
        json.column("data", markers, |out, marker| match self.describe(marker, texts) {
            Some((name, category, data)) => {
                rows.push((texts.number(name), category));
                out.value(&data)
            }
            None => {
                rows.push((texts.number(""), Category::Other));
                out.raw("null")
            }
        })?;
        json.column("name", &rows, |out, &(name, _)| out.number(name))?;
        json.column("startTime", markers, |out, m| out.millis(times.since_start(m.since)))?;
        json.column("endTime", markers, |out, marker| match marker.until {
            Some(until) if marker.phase() == INTERVAL => out.millis(times.since_start(until)),
            _ => out.raw("null"),
        })?;
        json.column("phase", markers, |out, marker| out.number(marker.phase()))?;
        json.column("category", &rows, |out, &(_, category)| out.number(category.index()))?;
        json.end(markers.len())
    }
}

/// How the viewer shows each type of marker.
pub(super) fn schemas() -> Value {
    let everywhere = ["marker-chart", "marker-table", "timeline-overview"];
    let schema = |name: &str, label: &str, fields: &[(&str, &str, &str)]| {
        let field = |&(key, label, format): &(&str, &str, &str)| json!({ "key": key, "label": label, "format": format });
        json!({
            "name": name,
            "chartLabel": label,
            "tooltipLabel": label,
            "tableLabel": label,
            "display": everywhere,
            "fields": fields.iter().map(field).collect::<Vec<_>>(),
        })
    };
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
            &[("exception", "Type", "unique-string"), ("message", "Message", "unique-string")],
        ),
        schema(
            "Contention",
            "Waits for a {marker.data.lock} lock",
            &[("lock", "Lock", "unique-string")],
        ),
        schema("Load", "{marker.data.file}", &[("file", "File", "unique-string")]),
        schema(
            "Activity",
            "{marker.name}",
            &[("provider", "Provider", "unique-string"), ("id", "Activity", "string")],
        ),
    ])
}
