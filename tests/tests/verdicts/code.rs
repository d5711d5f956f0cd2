//! What a rundown and unloads leave out: dynamic methods, a module, unloads before an exit; and
//! events that contradict each other.

use crate::case::{Case, Expected, Family};

fn script(seed: u64, change: &str) -> String {
    format!(
        r#"
scenario "code" seed={seed}
machine processors=2
process "Stays.exe" pid=100 start="2.1s" threads=2 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Stays" {{
            module "C:\\App\\Stays.dll" {{
                methods 40 ready=10
                methods 12 kind="dynamic" ready=6
            }}
        }}
        assembly "More" {{ module "C:\\App\\More.dll" {{ methods 20 ready=10 }} }}
    }}
    every "40ms" from="2.5s" until="3.5s" {{ jit 1 }}
    at "5.2s" {{ jit 1 }}
}}
process "Short.exe" pid=200 start="2.3s" exit="4s" threads=2 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Short" {{ module "C:\\App\\Short.dll" {{ methods 30 ready=10 }} }}
        assembly "Help" {{ module "C:\\App\\Help.dll" {{ methods 8 ready=4 }} }}
    }}
    every "40ms" from="2.7s" until="3.5s" {{ jit 1 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{
    kernel "processes"
    enable "runtime" keywords=0x98 level=5
}} }}
at "4.5s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "7s" {{ stop "clr" }}
{change}
"#
    )
}

/// A change of the file, and the rules that find it.
struct Change {
    edit: &'static str,
    rules: &'static [&'static str],
}

const fn change(edit: &'static str, rules: &'static [&'static str]) -> Change {
    Change { edit, rules }
}

const INCOMPLETE: &[&str] = &["rundown.incomplete"];
const NOT_UNLOADED: &[&str] = &["symbols.not-unloaded"];
const CONTRADICTION: &[&str] = &["symbols.implausible"];

/// The changes: compiled methods have flags 8, dynamic ones 9.
const CHANGES: [Change; 17] = [
    change(
        r#"delete "MethodDCEndVerbose" with="MethodFlags" is=9"#,
        INCOMPLETE,
    ),
    change(
        r#"delete "MethodDCEndVerbose" with="MethodFlags" is=9 nth=1"#,
        INCOMPLETE,
    ),
    change(
        r#"delete "MethodDCEndVerbose" with="MethodFlags" is=8 nth=3"#,
        INCOMPLETE,
    ),
    change(
        r#"delete "MethodDCEndVerbose" with="MethodFlags" is=8 nth=-1"#,
        INCOMPLETE,
    ),
    change(r#"delete "ModuleDCEnd" nth=1"#, INCOMPLETE),
    change(r#"delete "ModuleDCEnd" nth=2"#, INCOMPLETE),
    change(r#"delete "AssemblyDCEnd" nth=1"#, INCOMPLETE),
    change(
        r#"alter "MethodDCEndVerbose" nth=2 { ModuleID 0x123456780000 }"#,
        &["symbols.module-unknown"],
    ),
    change(r#"delete "ModuleUnload" pid=200 nth=1"#, NOT_UNLOADED),
    change(r#"delete "AssemblyUnload" pid=200 nth=1"#, NOT_UNLOADED),
    change(
        r#"delete "MethodUnloadVerbose" pid=200 nth=4"#,
        NOT_UNLOADED,
    ),
    change(
        r#"alter "RuntimeInformationDCStart" nth=1 { Sku 2 }"#,
        CONTRADICTION,
    ),
    change(
        r#"alter "ModuleDCEnd" nth=1 { ModuleFlags 4 }"#,
        CONTRADICTION,
    ),
    change(
        r#"alter "ModuleUnload" nth=1 { ModuleFlags 4 }"#,
        CONTRADICTION,
    ),
    change(
        r#"alter "AssemblyDCEnd" nth=1 { AssemblyFlags 2 }"#,
        CONTRADICTION,
    ),
    change(
        r#"alter "AppDomainDCEnd" nth=1 { AppDomainFlags 0 }"#,
        CONTRADICTION,
    ),
    change(
        r#"alter "MethodDCEndVerbose" with="MethodFlags" is=8 nth=5 { MethodFlags 0 }"#,
        CONTRADICTION,
    ),
];

pub fn family() -> Family {
    let mut cases = Vec::new();
    for Change { edit, rules } in CHANGES {
        for seed in [101, 102] {
            let script = script(seed, &format!("edit \"clr.etl\" {{ {edit} }}"));
            cases.push(Case::new(
                format!("{edit}, seed {seed}"),
                script,
                Expected::Found(rules),
            ));
        }
    }
    for seed in (103..119).chain(127..137) {
        cases.push(Case::new(
            format!("seed {seed}"),
            script(seed, ""),
            Expected::Sound,
        ));
    }
    for (seed, forgotten) in [(119, 1), (120, 2), (121, 3), (122, 6)] {
        // Dynamic methods may be destroyed before the rundown.
        let forget = format!("at \"4.2s\" {{ in \"Stays.exe\" {{ forget {forgotten} }} }}");
        let name = format!("{forgotten} dynamic methods destroyed");
        cases.push(Case::new(name, script(seed, &forget), Expected::Sound));
    }
    for (seed, at) in [(123, "3.9s"), (124, "4.1s"), (125, "4.3s"), (126, "4.4s")] {
        let collect = format!("at \"{at}\" {{ in \"Stays.exe\" {{ gc 1 }} }}");
        cases.push(Case::new(
            format!("collection at {at}"),
            script(seed, &collect),
            Expected::Sound,
        ));
    }
    Family {
        name: "8: what rundowns and unloads leave out",
        cases,
    }
}
