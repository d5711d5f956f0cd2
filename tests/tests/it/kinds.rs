//! Machines of four kinds that record samples, context switches, a CLR and packets: what reports
//! and exports show of each is compared with its truth.

use std::sync::LazyLock;

use etl_synth::Script;

use crate::simulated::{Simulated, simulate};

/// A simulated machine, and how its recording is read.
pub struct Kind {
    pub name: &'static str,
    pub simulated: Simulated,
    /// Traces of the recording, one or several.
    pub files: &'static [&'static str],
}

const MERGED: &[&str] = &["merged.etl"];

/// Name, machine, CLR, and traces.
const KINDS: [(&str, &str, &str, &[&str]); 4] = [
    ("kernel and CLR", "", r#""core" version="6.0.100""#, MERGED),
    ("32-bit", "bits=32", r#""core" version="3.1.0""#, MERGED),
    (
        "Windows 7",
        r#"os="6.1.7601""#,
        r#""desktop" version="4.0.30319.0""#,
        MERGED,
    ),
    (
        "unmerged",
        r#"os="10.0.22621""#,
        r#""desktop" version="4.8.4000.0""#,
        &["kernel.etl", "clr.etl", "net.etl"],
    ),
];

/// The machines of all kinds.
pub fn kinds() -> &'static [Kind] {
    static ALL: LazyLock<Vec<Kind>> = LazyLock::new(|| {
        let kind = |(name, machine, clr, files)| {
            let script = SCRIPT.replace("{machine}", machine).replace("{clr}", clr);
            let scenario = Script::new("kinds.kdl", &script).parse();
            let scenario = scenario.unwrap_or_else(|error| panic!("{name}: {error}"));
            Kind {
                name,
                simulated: simulate(name, script, scenario),
                files,
            }
        };
        KINDS.map(kind).into()
    });
    &ALL
}

const SCRIPT: &str = r#"
scenario "kinds" seed=9 about="samples, switches, collections and packets"
machine processors=2 memory-mb=2048 {machine} {
    network-card "Ethernet" address="00-15-5D-7C-58-28" ip="10.0.0.5;fd00::5" dns="10.0.0.1"
}
process "Shop.exe" pid=3000 threads=3 {
    clr {clr} { assembly "Shop" { module "C:\\App\\Shop.exe" { methods 80 ready=20 } } }
    every "20ms" from="2.1s" until="3s" { run "5ms"; jit 1 }
    every "50ms" from="2.1s" until="3s" { allocate 50; throw 1; contend 2 }
    every "90ms" from="2.1s" until="3s" {
        exchange "192.0.2.7:443" send=517 receive=6000 round-trip="15ms"
        exchange "[2001:db8::1]:80" send=3000 receive=900
    }
    at "2.5s" { gc 0 }
    at "2.8s" { gc 2 induced=#true }
}
at "2s" {
    run "xperf -on PROC_THREAD+LOADER+PROFILE+CSWITCH+DISPATCHER -stackwalk Profile -f kernel.etl"
    session "clr" file="clr.etl" { enable "runtime" keywords=0xC099 level=5 }
    session "net" file="net.etl" { enable "Microsoft-Windows-NDIS-PacketCapture" level=4 }
}
at "3s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "4s" { stop "clr"; stop "net"; run "xperf -stop" }
at "4.5s" { merge "kernel.etl clr.etl net.etl" into="merged.etl" }
"#;
