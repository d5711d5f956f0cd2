//! Numbers of analyses on a simulated Windows 7 with .NET Framework: the script causes them, and
//! the records are as Windows writes them.

use etl_analysis::behavior::contention::Contention;
use etl_analysis::behavior::io::{Io, Operation};
use etl_analysis::profile::{ProfileOptions, SampleCollector};
use etl_analysis::{Analysis, Machine, Observer, Recording};

use crate::packets::{file, simulated};

const SCRIPT: &str = r#"
machine os="6.1.7601" processors=2 interrupts=20 { disk "Virtual Disk" gb=128 { volume "C:" gb=100 } }
process "Fx.exe" pid=3000 threads=2 {
    clr "framework" { assembly "Fx" { module "C:\\Fx\\Fx.dll" { methods 5 ready=5 } } }
    at "2s" { open-file "C:\\Fx\\data.bin"; read-file "C:\\Fx\\data.bin" bytes=65536 }
    every "10ms" from="2s" until="2.5s" { contend 1 }
}
at "1s" {
    session "clr" file="clr.etl" { enable "runtime" keywords=0x4010 level=5 }
    session "NT Kernel Logger" file="kernel.etl" { kernel "processes profile disks" }
}
at "3s" { stop "clr"; stop "NT Kernel Logger" }
"#;

fn observe<T: Observer>(trace: &[u8], observer: &mut T) -> Machine {
    let mut recording = Recording::open([(trace, "simulated.etl")]).unwrap();
    Analysis::new().run(&mut recording, observer).unwrap()
}

/// The end of a disk operation interrupts any thread; its beginning has the Irp and the thread.
#[test]
fn simulated_disks_of_windows_7_have_the_process_that_asked() {
    let files = simulated(SCRIPT, None);
    let mut io = Io::new();
    let machine = observe(file(&files, "kernel.etl"), &mut io);
    let mut bytes = 0;
    for total in io.totals() {
        assert_eq!(total.operation, Operation::DiskRead);
        let process = machine.process(total.process.unwrap()).unwrap();
        assert_eq!(process.pid().get(), 3000);
        bytes += total.total.bytes;
    }
    assert_eq!(bytes, 65_536);
}

/// .NET Framework writes version 1 of the start of a wait and version 0 of its end.
#[test]
fn simulated_locks_of_net_framework_end() {
    let files = simulated(SCRIPT, None);
    let mut contention = Contention::new();
    observe(file(&files, "clr.etl"), &mut contention);
    let mut waits = 0;
    for thread in contention.threads().values() {
        assert_eq!(thread.unended, 0);
        waits += thread.durations.as_slice().len();
    }
    assert_eq!(waits, 50);
}

#[test]
fn simulated_interrupts_of_idle_processors_are_work() {
    let files = simulated(SCRIPT, None);
    let mut samples = SampleCollector::new();
    let machine = observe(file(&files, "kernel.etl"), &mut samples);
    let profile = samples.profile(&machine, &ProfileOptions::new());
    let mut interrupts = 0;
    for root in profile.roots() {
        if root.interrupt.is_some() {
            interrupts += profile.nodes()[root.first].inclusive.samples;
        }
    }
    // Each processor is sampled every millisecond for two seconds. A fifth of the idle samples.
    let idle = interrupts + profile.idle().samples;
    assert!(idle > 3_500, "{idle}");
    let percent = interrupts * 100 / idle;
    assert!((17..=23).contains(&percent), "{percent} % of {idle}");
}
