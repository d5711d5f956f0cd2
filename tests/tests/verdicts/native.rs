//! Stacks of the CLR in recordings without a kernel session: native addresses are not recorded, and
//! methods that are missing still are.

use crate::case::{Case, Declared, Expected, Family};
use crate::edit::Rec;

fn script(clr: &str, runtime: u64, rundown: u64, seed: u64) -> String {
    format!(
        r#"
scenario "native" seed={seed}
machine processors=2
process "Shop.exe" pid=100 threads=3 {{
    clr {clr} {{
        assembly "Shop" {{ module "C:\\App\\Shop.dll" {{ methods 200 ready=40 }} }}
    }}
    every "20ms" from="2.1s" until="4s" {{ jit 1; throw 1 }}
    at "3s" {{ gc 1 }}
}}
at "2s" {{ run "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:{runtime:#x}:0x5 -f clr1.etl" }}
at "5s" {{ run "xperf -start clrRundown -on A669021C-C450-4609-A035-5AF59AF4DF18:{rundown:#x}:0x5 -f clr2.etl" }}
at "8s" {{ run "xperf -stop clr"; run "xperf -stop clrRundown"; run "xperf -merge clr1.etl clr2.etl merged.etl" }}
"#
    )
}

/// Every second method of the rundown is missing, and no load shows it.
fn without_methods(records: &mut Vec<Rec>) {
    let mut count = 0;
    records.retain(|record| {
        let is_method = record.is_event() && record.name.starts_with("MethodDCEnd");
        count += usize::from(is_method);
        !is_method || count % 2 == 0
    });
}

pub fn family() -> Family {
    let mut cases = Vec::new();
    let clrs = [
        r#""core" version="6.0.100""#,
        r#""desktop" version="4.8.4000.0""#,
    ];
    for clr in clrs {
        // The documents' lines, and the recipe with stacks.
        for runtime in [0xffff_ffff_u64, 0x4001_fc1f, 0x4001_ccbd] {
            for seed in [3, 4] {
                let sound = Case {
                    name: format!("{clr} {runtime:#x}, seed {seed}"),
                    script: script(clr, runtime, 0x138, seed),
                    file: "merged.etl",
                    merged: &[],
                    edit: None,
                    declared: Declared::default(),
                    accepted: None,
                    expected: Expected::Sound,
                };
                cases.push(Case {
                    script: script(clr, runtime, 0xb8, seed),
                    expected: Expected::Error(&["rundown.none"]),
                    ..sound.clone()
                });
                cases.push(Case {
                    edit: Some(without_methods),
                    expected: Expected::Found(&["symbols.unresolved", "rundown.incomplete"]),
                    ..sound.clone()
                });
                cases.push(Case {
                    script: sound.script.replace("gc 1", "gc 0"),
                    ..sound.clone()
                });
                cases.push(sound);
            }
        }
    }
    Family {
        name: "9: native addresses without a kernel session",
        cases,
    }
}
