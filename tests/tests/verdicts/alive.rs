//! Processes that are not in a rundown of others: an error if an event shows that they lived when
//! it began, undecided without one, and sound if they had ended.

use crate::case::{Case, Declared, Expected, Family};

/// What shows that a process lives.
#[derive(Clone, Copy)]
enum Proof {
    /// The kernel's events.
    Kernel,
    /// It compiles after the rundown.
    Later,
    /// Nothing.
    None,
}

fn script(mask: u64, proof: Proof, is_excluded: bool, seed: u64) -> String {
    let kernel = match proof {
        Proof::Kernel => "kernel \"processes\"",
        Proof::Later | Proof::None => "",
    };
    let exit = if is_excluded { "" } else { "exit=\"3s\"" };
    let until = match proof {
        Proof::Later if is_excluded => "5.5s",
        _ => "2.8s",
    };
    let only = if is_excluded { "processes=200" } else { "" };
    format!(
        r#"
scenario "alive" seed={seed}
machine processors=2
process "Gone.exe" pid=100 {exit} threads=2 {{
    clr "core" version="6.0.100" {{
        assembly "Gone" {{ module "C:\\App\\Gone.dll" {{ methods 200 ready=20 }} }}
    }}
    every "40ms" from="2.1s" until="{until}" {{ jit 1; allocate 2; throw 1 }}
    at "2.5s" {{ gc 0 }}
}}
process "Listed.exe" pid=200 threads=2 {{
    clr "core" version="6.0.100" {{
        assembly "Listed" {{ module "C:\\App\\Listed.dll" {{ methods 200 ready=20 }} }}
    }}
    every "40ms" from="2.1s" until="5.5s" {{ jit 1 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{
    {kernel}
    enable "runtime" keywords={mask:#x} level=5
}} }}
at "4s" {{ enable "rundown" in="clr" keywords=0x138 level=5 {only} }}
at "6s" {{ stop "clr" }}
"#
    )
}

pub fn family() -> Family {
    let mut cases = Vec::new();
    // With and without the loader, with compilations, with exceptions alone.
    for mask in [0x98_u64, 0x18, 0x10, 0x90, 0x8000, 0x8010] {
        // Methods of a process without a rundown have no module then, which is another finding.
        let lacks_modules = mask & 0x8 == 0 && mask & 0x10 != 0;
        // So are addresses of exceptions in methods that only the rundown would list.
        let has_addresses = mask & 0x8000 != 0;
        let has_others = lacks_modules || has_addresses;
        for seed in [1, 2] {
            for proof in [Proof::Kernel, Proof::Later, Proof::None] {
                for is_excluded in [true, false] {
                    let expected = match proof {
                        _ if !is_excluded && has_others => Expected::Without("rundown.missing"),
                        Proof::None if has_addresses => Expected::Without("rundown.missing"),
                        _ if !is_excluded => Expected::Sound,
                        Proof::None => Expected::Undecided("rundown.missing"),
                        Proof::Kernel | Proof::Later => Expected::Error(&["rundown.missing"]),
                    };
                    cases.push(Case {
                        name: format!("mask {mask:#x}, seed {seed}"),
                        script: script(mask, proof, is_excluded, seed),
                        file: "clr.etl",
                        merged: &[],
                        edit: None,
                        declared: Declared::default(),
                        accepted: None,
                        expected,
                    });
                }
            }
        }
    }
    Family {
        name: "3: processes that are not in the rundown",
        cases,
    }
}
