//! What a rundown lists is not loaded later.

use crate::case::{Case, Expected, Family};

/// A process with a rundown at 4 s and a collection at 5.8 s, and a change of its file.
fn script(seed: u64, rundown: u64, change: &str) -> String {
    format!(
        r#"
scenario "order" seed={seed}
machine processors=2
process "Shop.exe" pid=100 start="2.2s" threads=3 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Shop" {{ module "C:\\App\\Shop.dll" {{ methods 90 ready=20 }} }}
        assembly "Plug" late=#true collectible=#true {{
            module "C:\\App\\Plug.dll" {{ methods 12 ready=4 }}
        }}
    }}
    at "2.9s" {{ load "Plug" }}
    every "40ms" from="2.6s" until="3.5s" {{ jit 1 }}
    every "40ms" from="4.5s" until="4.9s" {{ jit 1 }}
    at "5.8s" {{ gc 0 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x99 level=5 }} }}
at "4s" {{ enable "rundown" in="clr" keywords={rundown:#x} level=5 }}
at "5.2s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "7s" {{ stop "clr" }}
{change}
"#
    )
}

fn moved(event: &str, nth: u64, after: &str) -> String {
    format!("edit \"clr.etl\" {{ move \"{event}\" nth={nth} after=\"{after}\" }}")
}

pub fn family() -> Family {
    let mut cases = Vec::new();
    let late = Expected::Error(&["rundown.out-of-order"]);
    let kinds = [
        ("MethodLoadVerbose", 3),
        ("MethodLoadVerbose", 8),
        ("MethodLoadVerbose", 14),
        ("ModuleLoad", 1),
        ("ModuleLoad", 2),
        ("AssemblyLoad", 1),
        ("AssemblyLoad", 2),
        ("AppDomainLoad", 1),
    ];
    for rundown in [0x138, 0x178] {
        for (event, nth) in kinds {
            let script = script(51, rundown, &moved(event, nth, "GCEnd"));
            let name = format!("{event} {nth} after the rundown {rundown:#x}");
            let mut of = Case::new(name, script, late.clone());
            of.declared.enabled = format!("runtime:0x99:5+rundown:{rundown:#x}:5+rundown:0x138:5");
            cases.push(of);
        }
        // Unchanged ones, with other seeds.
        for seed in 52..58 {
            let name = format!("rundown {rundown:#x}, seed {seed}");
            cases.push(Case::new(name, script(seed, rundown, ""), Expected::Sound));
        }
        for seed in 58..60 {
            // What is unloaded may be loaded again.
            let again = "in \"Shop.exe\" { unload \"Plug\" }";
            let load = "in \"Shop.exe\" { load \"Plug\" }";
            let actions = format!("at \"4.6s\" {{ {again} }}\nat \"4.8s\" {{ {load} }}");
            let name = format!("loaded again, seed {seed}");
            cases.push(Case::new(
                name,
                script(seed, rundown, &actions),
                Expected::Sound,
            ));
        }
    }
    Family {
        name: "5: loads of what a rundown listed before",
        cases,
    }
}
