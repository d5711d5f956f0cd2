//! Declared enablements against recordings with other masks. The judge are tables 1 and 2 of the
//! documents, as they print them, and the levels at which method events have names.

use std::collections::BTreeSet;

use crate::case::{Case, Declared, Expected, Family};

/// Masks and levels of the two providers.
#[derive(Clone, Copy)]
struct Masks {
    runtime: (u64, u8),
    rundown: (u64, u8),
}

/// A row of table 1 or 2: keywords that select events together, all of them.
struct Combination {
    keywords: u64,
    events: &'static str,
}

const fn combination(keywords: u64, events: &'static str) -> Combination {
    Combination { keywords, events }
}

/// Table 1: the runtime provider.
const TABLE_1: &[Combination] = &[
    combination(0x8, "loads and unloads of the loader"),
    combination(0x10, "loads of compiled methods"),
    combination(0x10 | 0x80, "unloads of compiled methods"),
    combination(0x20 | 0x40, "loads of precompiled methods"),
    combination(0x20 | 0x80, "unloads of precompiled methods"),
];

/// Table 2: the rundown provider.
const TABLE_2: &[Combination] = &[
    combination(0x8 | 0x40, "modules at the start"),
    combination(0x8 | 0x100, "modules at the end"),
    combination(0x10 | 0x40, "compiled methods at the start"),
    combination(0x10 | 0x100, "compiled methods at the end"),
    combination(0x20 | 0x40, "precompiled methods at the start"),
    combination(0x20 | 0x100, "precompiled methods at the end"),
];

/// The events that a mask and a level select, by a table.
fn selected(table: &[Combination], (mask, level): (u64, u8)) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    if level < 4 {
        return out;
    }
    for row in table
        .iter()
        .filter(|row| mask & row.keywords == row.keywords)
    {
        let is_method = row.events.contains("methods");
        let names = match level {
            5 if is_method => " with names",
            _ if is_method => " without names",
            _ => "",
        };
        out.insert(format!("{}{names}", row.events));
    }
    out
}

fn all_selected(masks: Masks) -> BTreeSet<String> {
    let mut out = selected(TABLE_1, masks.runtime);
    // Compilations begin with an event of their own at level 5.
    if masks.runtime.0 & 0x10 != 0 && masks.runtime.1 == 5 {
        out.insert("beginnings of compilations".to_owned());
    }
    out.extend(selected(TABLE_2, masks.rundown));
    out
}

/// Recordings whose verdict is "complete" without a declaration.
const RECORDED: [Masks; 5] = [
    Masks {
        runtime: (0xf8, 5),
        rundown: (0x138, 5),
    },
    Masks {
        runtime: (0x98, 5),
        rundown: (0x178, 5),
    },
    Masks {
        runtime: (0x98, 4),
        rundown: (0x138, 4),
    },
    Masks {
        runtime: (0x18, 5),
        rundown: (0x118, 5),
    },
    Masks {
        runtime: (0xb8, 5),
        rundown: (0x138, 5),
    },
];

/// Masks of the runtime provider that are declared.
const RUNTIME: [(u64, u8); 10] = [
    (0xf8, 5),
    (0x98, 5),
    (0x18, 5),
    (0xd8, 5),
    (0xb8, 5),
    (0x78, 5),
    (0xf0, 5),
    (0xe8, 5),
    (0x98, 4),
    (0xf8, 3),
];

/// Masks of the rundown provider that are declared; the documents print the first two.
const RUNDOWN: [(u64, u8); 9] = [
    (0xb8, 5),
    (0x138, 5),
    (0x38, 5),
    (0x78, 5),
    (0x118, 5),
    (0x128, 5),
    (0x130, 5),
    (0x178, 5),
    (0x138, 4),
];

/// A process that runs all the time, and one that starts and ends in the recording.
fn script(masks: Masks, kernel: bool) -> String {
    let kernel = if kernel { "kernel \"processes\"" } else { "" };
    format!(
        r#"
scenario "requests" seed=11
machine processors=2
process "Long.exe" pid=100 threads=2 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Lib" {{ module "C:\\App\\Lib.dll" kind="ngen" {{ methods 20 namespace="Lib" }} }}
        assembly "Long" {{ module "C:\\App\\Long.dll" {{ methods 60 ready=20 }} }}
    }}
    every "60ms" from="2.1s" until="3.5s" {{ jit 1 }}
}}
process "Short.exe" pid=200 start="2.3s" exit="3.6s" threads=2 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Lib" {{ module "C:\\App\\Lib.dll" kind="ngen" {{ methods 20 namespace="Lib" }} }}
        assembly "Short" {{ module "C:\\App\\Short.dll" {{ methods 40 ready=10 }} }}
    }}
    every "60ms" from="2.6s" until="3.4s" {{ jit 1 }}
}}
process "Later.exe" pid=300 start="2.4s" threads=2 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Lib" {{ module "C:\\App\\Lib.dll" kind="ngen" {{ methods 20 namespace="Lib" }} }}
        assembly "Later" {{ module "C:\\App\\Later.dll" {{ methods 40 ready=10 }} }}
    }}
    every "60ms" from="2.8s" until="3.5s" {{ jit 1 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{
    {kernel}
    enable "runtime" keywords={:#x} level={}
}} }}
at "4s" {{ enable "rundown" in="clr" keywords={:#x} level={} }}
at "6s" {{ stop "clr" }}
"#,
        masks.runtime.0, masks.runtime.1, masks.rundown.0, masks.rundown.1
    )
}

fn case(recorded: Masks, enabled: String, expected: Expected) -> Case {
    Case {
        name: format!(
            "{:#x}:{} and {:#x}:{}",
            recorded.runtime.0, recorded.runtime.1, recorded.rundown.0, recorded.rundown.1
        ),
        script: script(recorded, false),
        file: "clr.etl",
        merged: &[],
        edit: None,
        declared: Declared {
            enabled,
            ..Declared::default()
        },
        accepted: None,
        expected,
    }
}

fn words(masks: Masks) -> String {
    format!(
        "runtime:{:#x}:{}+rundown:{:#x}:{}",
        masks.runtime.0, masks.runtime.1, masks.rundown.0, masks.rundown.1
    )
}

/// Every recording with every declaration that differs from it in one provider.
fn deviations() -> Vec<(Masks, Masks)> {
    let mut out = Vec::new();
    for recorded in RECORDED {
        for runtime in RUNTIME {
            out.push((
                recorded,
                Masks {
                    runtime,
                    ..recorded
                },
            ));
        }
        for rundown in RUNDOWN {
            out.push((
                recorded,
                Masks {
                    rundown,
                    ..recorded
                },
            ));
        }
    }
    out
}

/// Declarations that fit a recording: its own masks, with keywords that nothing in it has, for one
/// provider, with other sessions, or as the truth states them.
fn sound() -> Vec<Case> {
    let mut out = Vec::new();
    for recorded in RECORDED {
        let Masks { runtime, rundown } = recorded;
        let more = Masks {
            runtime: (runtime.0 | 0x8000 | 0x400, runtime.1),
            ..recorded
        };
        let only_runtime = format!("runtime:{:#x}:{}", runtime.0, runtime.1);
        let only_rundown = format!("rundown:{:#x}:{}", rundown.0, rundown.1);
        for enabled in [words(recorded), words(more), only_runtime, only_rundown] {
            out.push(case(recorded, enabled, Expected::Sound));
        }
        out.push(case(recorded, String::new(), Expected::Sound));
        for kernel in [false, true] {
            let mut with_truth = case(recorded, String::new(), Expected::Sound);
            with_truth.script = script(recorded, kernel);
            with_truth.declared.has_truth = true;
            out.push(with_truth.clone());
            with_truth.declared.has_other_sessions = true;
            out.push(with_truth);
        }
    }
    out
}

/// Events that the declaration does not request: an error, unless there are other sessions.
pub fn not_requested() -> Family {
    let mut cases = sound();
    for (recorded, declared) in deviations() {
        let there = all_selected(recorded);
        let requested = all_selected(declared);
        if there.is_subset(&requested) {
            continue;
        }
        let error = Expected::Error(&["filter.not-enabled"]);
        cases.push(case(recorded, words(declared), error));
    }
    for recorded in RECORDED {
        // These events pass the filter of their session: another may have made the CLR raise them.
        let declared = Masks {
            rundown: (0x38, 5),
            ..recorded
        };
        let open = Expected::Undecided("filter.not-enabled");
        let mut with_others = case(recorded, words(declared), open);
        with_others.declared.has_other_sessions = true;
        cases.push(with_others);
    }
    balance(&mut cases);
    Family {
        name: "1: events that the declaration does not request",
        cases,
    }
}

/// Events that the declaration requests, and that are missing.
pub fn promised() -> Family {
    let mut cases = sound();
    for (recorded, declared) in deviations() {
        let there = all_selected(recorded);
        let requested = all_selected(declared);
        if !there.is_subset(&requested) || there == requested {
            continue;
        }
        let rules = &[
            "rundown.partial",
            "filter.missing-loads",
            "symbols.not-unloaded",
            "symbols.jit-without-load",
            "rundown.incomplete",
        ];
        cases.push(case(recorded, words(declared), Expected::Error(rules)));
    }
    Family {
        name: "2: events that the declaration requests and that are missing",
        cases,
    }
}

/// Repeats sound cases with other seeds until they are half of all.
fn balance(cases: &mut Vec<Case>) {
    let broken = cases
        .iter()
        .filter(|case| case.expected.is_broken())
        .count();
    let sound: Vec<Case> = cases
        .iter()
        .filter(|case| matches!(case.expected, Expected::Sound))
        .cloned()
        .collect();
    let mut seed = 12;
    while cases.len() < 2 * broken {
        for case in &sound {
            let mut again = case.clone();
            again.script = case.script.replacen("seed=11", &format!("seed={seed}"), 1);
            cases.push(again);
        }
        seed += 1;
    }
}
