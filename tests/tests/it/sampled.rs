//! The samples of a simulated kernel session, with the names of their stacks.

use std::collections::{BTreeMap, BTreeSet};

use etl_schema::encode::OwnedValue;
use etl_synth::truth::{EventOutcome, KnownCode, KnownEvent};
use serde_json::Value;

use crate::simulated::{Simulated, read, simulate};

/// The kernel's session.
const SESSION: &str = "NT Kernel Logger";

/// A sample of a process that is not the idle one.
pub struct Sampled {
    /// Name and id of the process: `Orders.exe (4312)`.
    pub process: String,
    pub tid: u32,
    /// What is at the addresses of its stack, innermost first.
    pub labels: Vec<String>,
}

impl Sampled {
    /// The stack as exporters write it.
    pub fn stack(&self) -> String {
        path_of(&self.labels)
    }
}

/// Simulates one of the scenarios of `corpus/`.
pub fn simulated(name: &str) -> Simulated {
    let (script, scenario) = read(name);
    simulate(name, script, scenario)
}

/// The samples that the kernel's session recorded, if there was one.
pub fn sampled(simulated: &Simulated) -> Vec<Sampled> {
    let symbols = Symbols::new(simulated);
    let Some(session) = simulated.truth.sessions.iter().find(|s| s.name == SESSION) else {
        return Vec::new();
    };
    // By the number of the event. Of several parts, that of the kernel comes first.
    let mut stacks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    // The last event of a thread at a time: the next stack is of that.
    let mut last: BTreeMap<(i64, u32), u64> = BTreeMap::new();
    for event in &simulated.truth.events {
        if event.name != "Stack" {
            // The stack of a switch is that of the thread that runs from then on.
            let is_switch = event.name == "CSwitch";
            let tid = if is_switch {
                number(event, "NewThreadId") as u32
            } else {
                event.tid.get()
            };
            last.insert((event.timestamp.get(), tid), event.number);
            continue;
        }
        let of = (
            number(event, "EventTimeStamp") as i64,
            number(event, "StackThread") as u32,
        );
        let OwnedValue::Array(list) = &event.fields.last().unwrap().value else {
            panic!("no stack")
        };
        let Some(of) = last.get(&of) else { continue };
        stacks
            .entry(*of)
            .or_default()
            .extend(list.iter().map(unsigned));
    }
    let mut sampled = Vec::new();
    for event in simulated
        .truth
        .events
        .iter()
        .filter(|e| e.name == "SampleProf")
    {
        if event.outcome(session.index) != Some(EventOutcome::Recorded) || event.pid == 0 {
            continue;
        }
        assert_eq!(u64::from(event.tid.get()), number(event, "ThreadId"));
        let alone = vec![number(event, "InstructionPointer")];
        let stack = stacks.get(&event.number).unwrap_or(&alone);
        assert_eq!(stack[0], alone[0]);
        let labels = stack
            .iter()
            .map(|&address| symbols.label(event.pid.get(), address, event.at));
        let process = format!("{} ({})", symbols.names[&event.pid.get()], event.pid);
        sampled.push(Sampled {
            process,
            tid: event.tid.get(),
            labels: labels.collect(),
        });
    }
    sampled
}

/// Joins labels of a stack, outermost first, with an image only once where no method is known
/// between.
pub fn path_of(labels: &[String]) -> String {
    let mut labels: Vec<&str> = labels.iter().rev().map(String::as_str).collect();
    labels.dedup_by(|a, b| a == b && a.ends_with('?'));
    labels.join(";")
}

/// Labels of a stack, innermost first, by process.
pub type Labels = (u32, Vec<String>);

/// The stacks that the kernel took, by time of the event and thread.
pub fn kernel_stacks(simulated: &Simulated) -> BTreeMap<(i64, u32), Labels> {
    let symbols = Symbols::new(simulated);
    let mut stacks: BTreeMap<(i64, u32), Labels> = BTreeMap::new();
    for event in simulated.truth.events.iter().filter(|e| e.name == "Stack") {
        let of = (
            number(event, "EventTimeStamp") as i64,
            number(event, "StackThread") as u32,
        );
        let pid = number(event, "StackProcess") as u32;
        let OwnedValue::Array(list) = &event.fields.last().unwrap().value else {
            panic!("no stack")
        };
        let labels = list
            .iter()
            .map(|a| symbols.label(pid, unsigned(a), event.at));
        let (labels, known) = (labels.collect::<Vec<_>>(), stacks.entry(of).or_default());
        known.0 = pid;
        // Two events of one time have the same stack.
        if known.1 != labels {
            known.1.extend(labels);
        }
    }
    stacks
}

/// The waits for locks with the stacks that the CLR took of their beginnings: ticks and labels.
pub fn lock_stacks(simulated: &Simulated) -> Vec<(u64, Vec<String>)> {
    let symbols = Symbols::new(simulated);
    let mut open: BTreeMap<u32, (i64, Vec<String>)> = BTreeMap::new();
    let mut waits = Vec::new();
    for event in &simulated.truth.events {
        let name = event.name.as_str();
        if name.starts_with("ContentionStart") {
            open.insert(event.tid.get(), (event.timestamp.get(), Vec::new()));
        } else if name == "CLRStackWalk"
            && let Some((_, labels)) = open.get_mut(&event.tid.get())
            && labels.is_empty()
        {
            let OwnedValue::Array(list) = &event.fields.last().unwrap().value else {
                panic!("no stack")
            };
            let stack = list
                .iter()
                .map(|a| symbols.label(event.pid.get(), unsigned(a), event.at));
            *labels = stack.collect();
        } else if name.starts_with("ContentionStop") {
            let (since, labels) = open.remove(&event.tid.get()).unwrap();
            waits.push((event.timestamp.get().abs_diff(since), labels));
        }
    }
    waits
}

pub fn number(event: &KnownEvent, name: &str) -> u64 {
    unsigned(event.field(name).unwrap())
}

fn unsigned(value: &OwnedValue) -> u64 {
    match value {
        OwnedValue::UInt(v) | OwnedValue::Pointer(v) => *v,
        OwnedValue::Int(v) => v.cast_unsigned(),
        other => panic!("{other:?}"),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('\\').next().unwrap()
}

/// Start and end of code, begin and end of its life in ns, and its label.
type Code = (u64, u64, u64, u64, String);

/// What the truth says of addresses.
struct Symbols {
    /// Names of processes.
    names: BTreeMap<u32, String>,
    /// By process.
    code: BTreeMap<u32, Vec<Code>>,
    /// Process, start, end and label.
    images: Vec<(u32, u64, u64, String)>,
}

impl Symbols {
    fn new(simulated: &Simulated) -> Self {
        let inventory: Vec<Value> = (simulated.truth.inventory.iter())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let kind = |kind: &'static str| inventory.iter().filter(move |item| item["kind"] == kind);
        let u64 = |item: &Value, name: &str| item[name].as_u64().unwrap();
        let mut modules = BTreeMap::new();
        for item in kind("module") {
            modules.insert(
                (u64(item, "pid"), u64(item, "id")),
                file_name(item["path"].as_str().unwrap()).to_owned(),
            );
        }
        let images = kind("image").map(|item| {
            let (pid, base) = (u64(item, "pid") as u32, u64(item, "base"));
            let name = file_name(item["path"].as_str().unwrap());
            (pid, base, base + u64(item, "size"), format!("{name}!?"))
        });
        let mut images: Vec<(u32, u64, u64, String)> = images.collect();
        // Processes that have exited are not in the inventory.
        for event in simulated.truth.events.iter().filter(|e| e.name == "Load") {
            let Some(OwnedValue::Text(path)) = event.field("FileName") else {
                panic!("an image without a path");
            };
            let (pid, base) = (
                number(event, "ProcessId") as u32,
                number(event, "ImageBase"),
            );
            let name = format!("{}!?", file_name(path));
            images.push((pid, base, base + number(event, "ImageSize"), name));
        }
        // Helpers of the CLR have no event with these keywords.
        let mut recorded = BTreeSet::new();
        for event in &simulated.truth.events {
            let is_recorded = event.outcomes.iter().any(|entry| entry.is_recorded());
            if is_recorded && event.field("MethodStartAddress").is_some() {
                recorded.insert((event.pid, number(event, "MethodStartAddress")));
            }
        }
        let mut code: BTreeMap<u32, Vec<Code>> = BTreeMap::new();
        let named = |change: &&KnownCode| recorded.contains(&(change.pid, change.start));
        for change in simulated.truth.code.iter().filter(named) {
            let all = code.entry(change.pid.get()).or_default();
            let end = change.start + u64::from(change.size);
            if change.loaded {
                let module = modules.get(&(change.pid.get().into(), change.module_id));
                let module = module.map_or("?", String::as_str);
                let space = &change.namespace;
                let dot = if space.is_empty() { "" } else { "." };
                let label = format!("{module}!{space}{dot}{}", change.name);
                all.push((change.start, end, change.at, u64::MAX, label));
            } else {
                let open = |c: &&mut Code| (c.0, c.1, c.3) == (change.start, end, u64::MAX);
                all.iter_mut().find(open).unwrap().3 = change.at;
            }
        }
        let name = |item: &Value| {
            (
                u64(item, "pid") as u32,
                item["name"].as_str().unwrap().to_owned(),
            )
        };
        let names = kind("process").map(name).collect();
        Symbols {
            names,
            code,
            images,
        }
    }

    fn label(&self, pid: u32, address: u64, at: u64) -> String {
        let code = self.code.get(&pid).into_iter().flatten();
        let own = |(start, end, from, to, _): &&Code| {
            (*start..*end).contains(&address) && *from <= at && at < *to
        };
        if let Some((.., label)) = code.clone().find(own) {
            return label.clone();
        }
        let image = |of: u32| {
            let mut images = self.images.iter();
            images.find(|(p, start, end, _)| *p == of && (*start..*end).contains(&address))
        };
        let image = image(pid).or_else(|| image(4)).or_else(|| image(0));
        image.map_or("?".to_owned(), |(.., label)| label.clone())
    }
}
