//! Baselines: a finding about far more than the accepted one is new.

use crate::case::{Case, Declared, Edit, Expected, Family};
use crate::edit::Rec;

fn script(seed: u64) -> String {
    format!(
        r#"
scenario "amounts" seed={seed}
machine processors=2
process "Shop.exe" pid=100 start="2.2s" threads=3 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Shop" {{ module "C:\\App\\Shop.dll" {{ methods 400 ready=40 }} }}
    }}
    every "10ms" from="2.5s" until="4.5s" {{ jit 1 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x98 level=4 }} }}
at "5s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "7s" {{ stop "clr" }}
"#
    )
}

/// Removes the first loads of compiled methods.
fn without_loads(records: &mut Vec<Rec>, count: usize) {
    let mut removed = 0;
    records.retain(|record| {
        let is_load = record.is_event() && record.name.starts_with("MethodLoad");
        let is_removed = is_load && removed < count;
        removed += usize::from(is_removed);
        !is_removed
    });
}

const EDITS: [(usize, Edit); 6] = [
    (2, |records| without_loads(records, 2)),
    (3, |records| without_loads(records, 3)),
    (5, |records| without_loads(records, 5)),
    (9, |records| without_loads(records, 9)),
    (20, |records| without_loads(records, 20)),
    (70, |records| without_loads(records, 70)),
];

pub fn family() -> Family {
    let mut cases = Vec::new();
    for seed in [5, 6] {
        for (known, accepted) in EDITS {
            for (found, edit) in EDITS {
                let expected = if found > 2 * known {
                    Expected::New
                } else {
                    Expected::Known
                };
                cases.push(Case {
                    name: format!("{known} accepted, {found} found, seed {seed}"),
                    script: script(seed),
                    file: "clr.etl",
                    merged: &[],
                    edit: Some(edit),
                    declared: Declared {
                        enabled: "runtime:0x98:4+rundown:0x138:5".to_owned(),
                        ..Declared::default()
                    },
                    accepted: Some(accepted),
                    expected,
                });
            }
        }
    }
    Family {
        name: "10: findings about more than the baseline accepts",
        cases,
    }
}
