//! Examples: the words that they are for, a script, and what its truth holds.

use super::outcome;

/// Words with commas between them; the script; texts of its outcome, and how often they are there:
/// 0 for never, else at least so often.
pub type Example = (&'static str, &'static str, &'static [(&'static str, usize)]);

pub const EXAMPLES: &[Example] = &[
    (
        "scenario, scenario.seed, scenario.about",
        r#"scenario "named" seed=7 about="a sentence"
session "s" file="s.etl""#,
        &[(r#""scenario":"named","seed":7"#, 1)],
    ),
    (
        "machine, machine.os, machine.processors, machine.mhz, machine.frequency, machine.start, machine.uptime, machine.memory-mb, machine.time-zone, machine.bias, machine.disk-bytes-per-second, machine.bits",
        r#"machine os="6.1.7601" processors=3 mhz=1234 frequency=2000000 start="2026-01-05T08:30:00Z" uptime="1h" memory-mb=512 time-zone="Nowhere Standard Time" bias="-60" disk-bytes-per-second=1000 bits=32
session "s" file="s.etl" buffer-kb=4 buffers=8 { enable "runtime" level=5 }
<<process>>
at "1s" { contend 200 } }
at "2s" { stop "s" }"#,
        &[
            ("os_major: 6, os_minor: 1", 1),
            ("build: 7601", 1),
            ("processors: 3", 1),
            ("cpu_mhz: 1234", 1),
            ("perf_freq: 2000000", 1),
            // 2026-01-05T08:30:00Z, and an hour before.
            ("start_time: FileTime(134120754000000000)", 1),
            ("boot_time: FileTime(134120718000000000)", 1),
            ("bias: -60", 1),
            ("stated_pointer_size: 4", 1),
            // "Nowhere"
            ("standard_name: [78, 111, 119, 104, 101, 114, 101", 1),
            (r#""s":"lost""#, 10),
        ],
    ),
    (
        "machine.packet-bytes, resolve, resolve.answer, resolve.round-trip, exchange, exchange.send, exchange.receive, exchange.round-trip, replay, replay.address",
        r#"machine os="10.0.22621" packet-bytes=60
process "App.exe" { at "2s" {
    resolve "example.com" answer="192.0.2.7" round-trip="5ms"
    exchange "192.0.2.7:443" send=1600 receive=900 round-trip="7ms"
} }
session "s" file="s.etl" { enable "Microsoft-Windows-PktMon" keywords=0x12 level=4 }
at "3s" { replay "web.pcap" address="00-15-5D-7C-58-28" }
at "4s" { stop "s" }"#,
        &[
            // Two frames of DNS, 11 of TCP with two segments sent, one packet of the capture.
            (r#""PktGroupId":14"#, 4),
            (r#""OriginalPayloadSize":1514,"LoggedPayloadSize":60"#, 4),
            (r#""PacketType":3"#, 4),
            (r#""EdgeName":"Upper""#, 2),
        ],
    ),
    (
        "machine.interrupts",
        r#"machine processors=1 interrupts=50
session "NT Kernel Logger" file="k.etl" { kernel "profile" }
at "1s" { stop "NT Kernel Logger" }"#,
        // Of every four interrupts, three are deferred procedure calls.
        &[(r#""Flags":129"#, 375), (r#""Flags":130"#, 124)],
    ),
    (
        "interrupt, interrupt.processor, interrupt.isr, interrupt.dpc, interrupt.kind, interrupt.message, interrupt.nested",
        r#"machine processors=2
session "NT Kernel Logger" file="k.etl" { kernel "interrupts" }
at "1s" {
    interrupt "ndis.sys" processor=1 isr="6us" dpc="180us" kind="timer" nested="9us"
    interrupt "storport.sys" isr="4us" message=#true
}
at "2s" { stop "NT Kernel Logger" }"#,
        &[
            (r#""call":"isr","processor":1,"driver":"ndis.sys""#, 2),
            (r#""ended_ns":1000006000,"call":"isr""#, 1),
            // The deferred call takes 180 µs, and is interrupted for 9 µs.
            (
                r#""started_ns":1000006000,"ended_ns":1000195000,"call":"timer_dpc""#,
                1,
            ),
            (
                r#""ended_ns":1000004000,"call":"message_isr","processor":0,"driver":"storport.sys""#,
                1,
            ),
        ],
    ),
    (
        "page-in, page-in.bytes, page-in.offset",
        r#"process "App.exe" { at "2s" { page-in "C:\\App\\catalog.dat" bytes=32768 offset=65536 } }
session "NT Kernel Logger" file="k.etl" { kernel "faults" }
at "3s" { stop "NT Kernel Logger" }"#,
        &[
            (r#""kind":"hard_fault","started_ns":2000000000"#, 1),
            (r#""path":"C:\\App\\catalog.dat""#, 1),
            (r#""offset":65536,"bytes":32768"#, 1),
        ],
    ),
    (
        "raise.version, raise.level, raise.keywords, raise.opcode, raise.task, raise.channel",
        r#"process "App.exe" { at "2s" {
    raise Microsoft-Windows-Kernel-Process 1 version=0 level=3 keywords=0x30 opcode=9 task=8 channel=7 { ImageName "a.exe" }
} }
session "s" file="s.etl" { enable "Microsoft-Windows-Kernel-Process" keywords="WINEVENT_KEYWORD_THREAD" level=3 }
at "3s" { stop "s" }"#,
        &[
            (
                r#""id":1,"version":0,"level":3,"opcode":9,"task":8,"keyword":"0x30""#,
                1,
            ),
            ("id 1 v0 level 3 keyword 0x30", 1),
        ],
    ),
    (
        "provider, provider.kind, provider.guid, event, event.id, event.version, event.level, event.keywords, event.task, event.opcode, event.message, field, raise, raise.activity, raise.thread, in",
        r#"provider "shop" kind="manifest" guid="11111111-2222-3333-4444-555555555555" {
    event "Sold" id=7 version=2 level=3 keywords=0x10 task=5 opcode=11 { field "Count" "UInt32"; field "What" "UnicodeString" }
}
provider "driver" kind="wpp" { event "Read" level=4 keywords=0x1 message="read %10!d! bytes" { field "length" "Int32" } }
process "App.exe" threads=2 { at "2s" { raise "shop" "Sold" activity="start" thread=1 { Count 42; What "apples" } } }
at "1s" { session "s" file="s.etl" { enable "shop" keywords=0x10 level=3; enable "driver" keywords=0x1 level=4 } }
at "3s" { in "App.exe" { raise "driver" "Read" { length 512 } } }
at "4s" { stop "s" }"#,
        &[
            (
                r#""provider_guid":"11111111-2222-3333-4444-555555555555","id":7,"version":2,"level":3,"opcode":11,"task":5,"keyword":"0x10","activity":"#,
                1,
            ),
            (r#""fields":{"Count":42,"What":"apples"}"#, 1),
            (r#""record_format":"message""#, 1),
            (r#""fields":{"length":512}"#, 1),
            ("file driver.tmf", 1),
        ],
    ),
    (
        "process, process.pid, process.parent, process.user, process.command-line, process.bits, process.start, process.exit, process.threads, image, image.size, image.pdb, image.age",
        r#"process "App.exe" pid=4004 parent=77 user="local-service" command-line="App.exe --run" bits=32 start="1.5s" exit="2s" threads=5 {
    image "C:\\App\\native.dll" size=0x30000 pdb="11111111-2222-3333-4444-555555555555" age=3
}
<<session>>"#,
        &[
            (r#""name":"App.exe","exited_ns":"#, 1),
            (r#""ParentId":77"#, 1),
            (r#""CommandLine":"App.exe --run""#, 1),
            // Local service.
            (r#""UserSID":"01010000000000051300000"#, 1),
            (r#"native.dll"#, 2),
            (r#""ImageSize":196608"#, 1),
        ],
    ),
    (
        "clr, clr.version, clr.instance, clr.enumeration-cost, clr.heaps",
        r#"process "App.exe" start="1.5s" { clr "core" version="8.0.3" instance=12 enumeration-cost="1ms" heaps=2 { <<assembly>> }
    at "3s" { gc 1 } }
<<session>>
at "2s" { enable "rundown" in="s" keywords=0x118 level=5 }"#,
        &[
            (
                r#""ClrInstanceID":12,"Sku":2,"BclMajorVersion":8,"BclMinorVersion":0,"BclBuildNumber":3"#,
                1,
            ),
            // Concurrent, and of servers.
            (r#""StartupFlags":4097"#, 1),
            // A millisecond for each of twenty items, first those of the start rundown, which is
            // not requested and takes its time.
            (r#""at_ns":2010"#, 0),
            (r#""at_ns":2030"#, 1),
            (r#""event":"GCJoin_V2","fields":{"Heap":1,"#, 2),
            (r#""event":"GCPerHeapHistory_V3""#, 2),
            (r#""NumHeaps":2"#, 1),
        ],
    ),
    (
        "domain, domain.shared, domain.late, load-domain, unload-domain, enter-domain",
        r#"process "App.exe" start="1.5s" { clr "desktop" version="4.8" {
        domain "common" shared=#true { <<assembly>> }
        domain "later" late=#true { assembly "L" { module "C:\\L.dll" { methods 1 } } }
    }
    at "2s" { load-domain "later"; enter-domain "later" }
    at "3s" { unload-domain "later" }
}
<<session>>"#,
        &[
            (r#""AppDomainFlags":4,"AppDomainName":"common""#, 1),
            (r#""event":"AppDomainLoad_V1""#, 2),
            (r#""event":"ThreadDomainEnter""#, 1),
            (r#""event":"AppDomainUnload_V1""#, 1),
        ],
    ),
    (
        "assembly, assembly.version, assembly.late, assembly.collectible, assembly.signed, assembly.authenticode, load, unload",
        r#"process "App.exe" { clr "desktop" version="4.8" {
        assembly "Plug" version="1.2.3.4" late=#true collectible=#true signed=#true authenticode=#true { module "C:\\Plug.dll" { methods 2 } }
    }
    at "2s" { load "Plug" }
    at "3s" { unload "Plug" }
}
<<session>>"#,
        &[
            (
                r#""event":"StrongNameVerificationStop_V1","fields":{"VerificationFlags":1,"ErrorCode":0,"FullyQualifiedAssemblyName":"Plug, Version=1.2.3.4, Culture=neutral, PublicKeyToken=31bf3856ad364e35""#,
                1,
            ),
            (r#""event":"AuthenticodeVerificationStart_V1""#, 1),
            (r#""event":"AssemblyLoad_V1""#, 1),
            (r#""AssemblyFlags":8"#, 2),
            (r#""event":"AssemblyUnload_V1""#, 1),
        ],
    ),
    (
        "module, module.kind, module.pdb, pdb, pdb.signature, pdb.age, pdb.path",
        r#"process "App.exe" start="1.5s" { clr "desktop" version="4.8" { assembly "A" {
        module "C:\\A.dll" kind="ngen" { pdb signature="11111111-2222-3333-4444-555555555555" age=9 path="C:\\A.pdb"; methods 3 cold=#true }
        module "C:\\B.dll" pdb=#false { methods 1 }
        module "Emitted" kind="dynamic" { methods 1 }
    } } }
<<session>>"#,
        &[
            (
                r#""ManagedPdbSignature":"11111111-2222-3333-4444-555555555555","ManagedPdbAge":9,"ManagedPdbBuildPath":"C:\\A.pdb""#,
                1,
            ),
            (
                r#""ManagedPdbSignature":"00000000-0000-0000-0000-000000000000","ManagedPdbAge":0"#,
                2,
            ),
            (r#".ni.dll"#, 1),
            // Native with a manifest; dynamic.
            (r#""ModuleFlags":26"#, 1),
            (r#""ModuleFlags":4"#, 1),
            // Cold code, of an image that is optimized.
            (r#""event":"ModuleRangeLoad""#, 1),
        ],
    ),
    (
        "methods, methods.kind, methods.ready, methods.size, methods.namespace, methods.cold, methods.generic, method, jit, forget",
        r#"process "App.exe" start="1.5s" { clr "core" version="6.0" { assembly "A" {
        module "C:\\A.dll" { method "Shop.Till::Open" size="77"; methods 4 ready=1 size="uniform 100..101" namespace="Deep.Down" generic=#true }
        module "C:\\R.dll" kind="r2r" { methods 2 kind="precompiled" cold=#true size="40" }
        module "Emitted" kind="dynamic" { methods 2 kind="dynamic" }
    } }
    at "3s" { jit 9; forget 1 } }
<<session>>"#,
        &[
            (r#""MethodNamespace":"Shop.Till","MethodName":"Open""#, 1),
            (r#""size":77,"#, 1),
            (r#""namespace":"Deep.Down."#, 4),
            (r#""MethodFlags":398"#, 4),
            // The cold half of precompiled code.
            (r#""size":20,"#, 2),
            (r#""event":"MethodUnloadVerbose_V1""#, 1),
        ],
    ),
    (
        "retire-threads, retire-threads.io, return-threads, return-threads.io, suspend-threads, resume-threads",
        r#"process "Old.exe" threads=1 start="1.5s" { clr "desktop" version="4.0.21006" { <<assembly>> }
    at "2s" { grow-pool 3; retire-threads 2; return-threads 1; shrink-pool 1; suspend-threads 1; resume-threads 1 }
    at "3s" { grow-pool 2 io=#true; retire-threads 1 io=#true; return-threads 1 io=#true }
}
process "New.exe" threads=1 start="1.5s" { clr "desktop" version="4.8.4000" { <<assembly>> }
    at "2s" { grow-pool 3; retire-threads 2; return-threads 1; suspend-threads 1 }
}
<<session>>"#,
        &[
            (r#""event":"WorkerThreadCreate""#, 3),
            (r#""event":"WorkerThreadRetire""#, 2),
            (r#""event":"WorkerThreadUnretire""#, 1),
            (r#""event":"WorkerThreadTerminate""#, 1),
            (r#""event":"ThreadpoolSuspensionSuspendThread""#, 1),
            (r#""event":"ThreadpoolSuspensionResumeThread""#, 1),
            (r#""event":"IOThreadRetire_V1""#, 1),
            (r#""event":"IOThreadUnretire_V1""#, 1),
            (r#""event":"ThreadPoolWorkerThreadRetirementStart""#, 2),
            (r#""event":"ThreadPoolWorkerThreadRetirementStop""#, 1),
            (
                r#""ActiveWorkerThreadCount":1,"RetiredWorkerThreadCount":2"#,
                1,
            ),
        ],
    ),
    (
        "at, every, every.from, every.until, every.spread, stub",
        r#"<<process>>
    every "10ms" from="2s" until="3s" { contend }
    every "10ms" from="4s" until="5s" spread="exponential" { stub }
    at "6s" { throw 2 }
}
<<session>>"#,
        &[
            (r#""event":"ContentionStart_V1""#, 100),
            (r#""at_ns":2010"#, 2),
            (r#""event":"ILStubGenerated""#, 5),
            // The second call of a method goes through the stub that is there.
            (r#""event":"ILStubCacheHit""#, 20),
            (r#""event":"ExceptionThrown_V1""#, 2),
        ],
    ),
    (
        "session, session.file, session.process, session.mode, session.buffer-kb, session.buffers, session.maximum-size, session.flush, session.clock, stop",
        r#"<<process>>; every "1ms" from="1.1s" until="2s" { contend 10 } }
at "1s" { session "s" file="part%d.etl" mode="newfile kbytes" buffer-kb=8 buffers=40 maximum-size=128 flush="1s" clock="system" { enable "runtime" level=5 } }
at "1s" { session "own" file="own.etl" process="App.exe" { enable "runtime" level=5 } }
at "3s" { stop "s"; stop "own" }"#,
        &[
            ("file part3.etl", 1),
            ("buffer_size: 8192", 3),
            ("maximum_file_size: 128", 3),
            ("clock_type: system time", 3),
            (r#""session":"own","file":"own.etl","pid":"#, 1),
            (r#""all_files":["part1.etl","part2.etl""#, 1),
        ],
    ),
    (
        "session.kind, session.rundown, session.no-rundown",
        r#"process "App.exe" pid=4004 { clr "core" { <<assembly>> } }
at "1s" { session "listed" kind="eventpipe" process="App.exe" file="listed.etl" rundown=0x118 { enable "runtime" level=5 } }
at "1s" { session "unlisted" kind="eventpipe" process="App.exe" file="unlisted.etl" no-rundown=#true { enable "runtime" level=5 } }
at "2s" { stop "listed"; stop "unlisted" }"#,
        &[
            (r#""event":"DCEndComplete_V1""#, 1),
            (r#""listed":"recorded""#, 10),
            // The other session has the events about the process only.
            (r#""event":"ProcessInfo""#, 2),
        ],
    ),
    (
        "enable, enable.keywords, enable.all, enable.level, enable.ids, enable.not-ids, enable.processes, enable.executables, enable.stacks, enable.stack-ids, enable.ignore-keyword-0, enable.old-rule, disable, disable.in",
        r#"process "App.exe" pid=4004 { clr "core" { <<assembly>> }; at "2s" { contend; throw }; at "4s" { contend } }
at "1s" { session "a" file="a.etl" { enable "runtime" keywords="Contention|Exception" all="Contention" level=4 ids="81 91" } }
at "1s" { session "b" file="b.etl" { enable "runtime" level=5 not-ids="81" processes="4004" stacks=#true } }
at "1s" { session "c" file="c.etl" { enable "runtime" executables="Other.exe" } }
at "1s" { session "d" file="d.etl" { enable "runtime" all=0x8000 ignore-keyword-0=#true old-rule=#true stack-ids="80" } }
at "3s" { disable "runtime" in="a" }
at "5s" { stop "a"; stop "b"; stop "c"; stop "d" }"#,
        &[
            (
                r#""match_any_keyword":"0xc000","match_all_keyword":"0x4000""#,
                1,
            ),
            (r#""ids":[81,91]"#, 1),
            (r#""not_ids":[81],"pids":[4004]"#, 1),
            (r#""executables":["Other.exe"]"#, 1),
            (r#""ignore_keyword_0":true"#, 1),
            (r#""a":"recorded","b":"id""#, 1),
            (r#""c":"process""#, 2),
            // By the old rule what must all be there does not count where any keyword will do.
            (r#""event":"ContentionStart_V1""#, 2),
            (r#""d":"keyword""#, 0),
            (r#""stack_sessions":["b","d"]"#, 1),
            (r#""a":"disabled""#, 1),
        ],
    ),
    (
        "kernel, kernel.interval, run",
        r#"<<process>>; every "10ms" from="2s" until="3s" { run "6ms" } }
at "1s" { session "k" file="k.etl" { kernel "processes images profile stacks" interval="2ms" } }
at "1s" { run "logman start trace l -p {e13c0d23-ccbc-4e12-931b-d9cc2eee27e4} 0x10 0x5 -o l.etl -ets" }
at "4s" { stop "k"; run "logman stop l -ets" }"#,
        &[
            (r#""record_format":"perfinfo""#, 100),
            (r#""file":"l.etl""#, 1),
            (r#""NewInterval":20000"#, 1),
        ],
    ),
    (
        "image.version, image.description, image.company, image.product, image.language",
        r#"process "App.exe" threads=1 { image "C:\\App\\a.dll" version="3.1 (main)" description="Adds" company="Sum" product="Sums" language=1031 }
at "1s" { session "k" file="k.etl" { kernel "images" } }
at "2s" { stop "k"; merge "k.etl" into="m.etl" }"#,
        &[(
            r#""file_version":"3.1 (main)","description":"Adds","company":"Sum","product":"Sums","language":1031}"#,
            1,
        )],
    ),
    (
        "clr.stack-depth",
        r#"process "App.exe" { clr "core" stack-depth="uniform 90..90" { <<assembly>> }
    at "2s" { throw 1 } }
at "1s" { session "s" file="s.etl" { enable "runtime" keywords=0x40008000 level=5 } }
at "3s" { stop "s" }"#,
        &[(r#""FrameCount":9"#, 1)],
    ),
    (
        "kernel.in",
        r#"process "App.exe" { at "1.5s" { start-thread }; at "2.5s" { start-thread } }
at "1s" { session "k" file="k.etl" { kernel "processes" } }
at "2s" { kernel "images" in="k" }
at "3s" { stop "k" }"#,
        &[
            (r#""flags":["LOADER"]"#, 1),
            (r#""event":"Start""#, 2),
            (r#""k":"disabled""#, 1),
        ],
    ),
    (
        "machine.computer, machine.domain, disk, disk.gb, volume, volume.gb, volume.free-gb, volume.file-system, network-card, network-card.address, network-card.ip, network-card.dns, display, display.width, display.height, display.bits, display.refresh, display.memory-mb, display.dpi, service, service.display, service.process, service.group, kernel.stackwalk",
        r#"machine computer="BUILD7" domain="corp.example" {
    disk "Virtual Disk" gb=128 { volume "C:" gb=100 free-gb=40 file-system="FAT32" }
    network-card "Ethernet" address="00-15-5D-7C-58-28" ip="10.0.0.5" dns="10.0.0.1"
    display "Basic Display" width=1280 height=1024 bits=16 refresh=75 memory-mb=32 dpi=120
    service "Work" display="Does the work" process="App.exe" group="workers"
}
<<process>>; at "2s" { start-thread } }
at "1s" { session "k" file="k.etl" { kernel "PROC_THREAD+LOADER" stackwalk="ThreadCreate" } }
at "3s" { stop "k" }"#,
        &[
            ("BUILD7", 1),
            ("corp.example", 1),
            ("Virtual Disk", 1),
            ("FAT32", 1),
            ("Ethernet", 1),
            ("10.0.0.5", 1),
            ("10.0.0.1", 1),
            ("Basic Display", 1),
            ("1280", 1),
            ("1024", 1),
            ("Does the work", 1),
            ("workers", 1),
            (r#""event":"Stack"#, 1),
        ],
    ),
    (
        "fault, fault.in",
        r#"<<process>>; at "2s" { contend 100 } }
at "1s" { run "xperf -start x -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x4000:0x5 -f x.etl" }
fault "truncated" in="x" percent=40
at "3s" { run "xperf -stop x" }"#,
        &[(r#""fault":"truncated","file":"x.etl""#, 1)],
    ),
    (
        "flush, flush.into, consume, consume.into, consume.bytes-per-second, leave",
        r#"<<process>>; every "1ms" from="1.1s" until="3s" { contend 5 } }
at "1s" {
    session "ring" mode="buffering" buffer-kb=16 buffers=12 { enable "runtime" level=5 }
    session "live" mode="real-time" buffer-kb=16 buffers=12 { enable "runtime" level=5 }
    consume "live" into="seen.etl" bytes-per-second=20000
}
at "2s" { flush "ring" into="snapshot.etl"; leave "live" }
at "4s" { stop "ring"; stop "live" }"#,
        &[
            ("file snapshot.etl", 1),
            ("file seen.etl", 1),
            (r#""live":"lost""#, 100),
        ],
    ),
    (
        "capture-state, capture-state.in",
        r#"<<process>> }
<<session>>
at "2s" { capture-state "runtime" in="s" }"#,
        &[
            (r#""event":"AppDomainLoad_V1""#, 1),
            (r#""event":"MethodLoadVerbose_V1""#, 10),
        ],
    ),
    (
        "merge, merge.into, merge.identities, merge.compress",
        r#"<<process>>; at "2s" { contend } }
at "1s" { session "a" file="a.etl" { enable "runtime" } ; session "b" file="b.etl" { enable "runtime" } }
at "3s" { stop "a"; stop "b"; merge "a.etl b.etl" into="c.etl" identities=#false compress=#true }"#,
        &[
            (r#""file":"c.etl","inputs":["a.etl","b.etl"]"#, 1),
            ("file c.etl", 1),
        ],
    ),
    (
        "tier, rejit",
        r#"<<process>>; at "2s" { tier 3 }; at "3s" { rejit 2 } }
<<session>>"#,
        &[
            (r#""event":"TieredCompilationResume""#, 1),
            (
                r#""event":"TieredCompilationBackgroundJitStart","fields":{"ClrInstanceID":9,"PendingMethodCount":3}"#,
                1,
            ),
            (r#""PendingMethodCount":7,"JittedMethodCount":3"#, 1),
            // The tier of optimised code, in bits 7 to 9.
            (r#""MethodFlags":520"#, 3),
            // Every later code of a method has a version; two methods have three.
            (r#""event":"MethodLoadVerbose_V2""#, 5),
            (r#""ReJITID":2}"#, 2),
        ],
    ),
    (
        "call, call.times, call.rounds",
        r#"process "App.exe" { clr "core" version="8.0.100" { assembly "App" { module "C:\\App\\App.dll" { method "App.Cart::Add" ready=#false } } }
at "2s" { call "App.Cart::Add" times=200 }; at "3s" { call 1 times=30 }; at "4s" { call 1 times=29 }; at "5s" { call "App.Cart::Add" rounds=20000 } }
<<session>>"#,
        &[
            // The calls before its end are not counted.
            (r#""event":"TieredCompilationPause""#, 1),
            (r#""event":"TieredCompilationResume""#, 1),
            // Thirty of the calls, and thirty of the instrumented code.
            (r#""event":"TieredCompilationBackgroundJitStart""#, 2),
            (r#""event":"TieredCompilationBackgroundJitStop""#, 2),
            // Instrumented, replaced while its loop runs, and optimized.
            (r#""event":"MethodLoadVerbose_V2""#, 3),
            (r#""MethodFlags":776"#, 1),
            (r#""MethodFlags":648"#, 1),
            (r#""MethodFlags":520"#, 1),
            (r#""ReJITID":3}"#, 1),
        ],
    ),
    (
        "allocate, gc, gc.induced, gc.background, gc.compact",
        r#"<<process>>; at "2s" { allocate 130 }; at "3s" { gc 2 induced=#true compact=#true }; at "4s" { gc 2 background=#true } }
<<session>>"#,
        &[
            (r#""event":"GCAllocationTick_V3""#, 130),
            // Two of themselves, two that are asked for.
            (r#""event":"GCTriggered""#, 4),
            (r#""event":"GCMarkWithType""#, 14),
            (r#""event":"GCHeapStats_V2""#, 4),
            (r#""Depth":2,"Reason":1,"Type":0"#, 1),
            (r#""Depth":2,"Reason":0,"Type":1"#, 1),
            (r#""event":"GCLOHCompact""#, 1),
            (r#""event":"GCCreateConcurrentThread_V1""#, 1),
            (r#""event":"GCGlobalHeapHistory_V4""#, 4),
            (r#""event":"GCGenerationRange""#, 20),
            // Only .NET Framework counts the memory of app domains.
            (r#""event":"AppDomainMemSurvived""#, 0),
            (r#""event":"AppDomainMemAllocated""#, 0),
        ],
    ),
    (
        "handle, handle.kind, free-handle, add-pressure, remove-pressure",
        r#"<<process>>; at "2s" { handle 3 kind="pinned" }; at "2.1s" { handle 2 }; at "2.2s" { free-handle 1 }; at "2.3s" { add-pressure 4096; remove-pressure 96; gc 0 } }
<<session>>"#,
        &[
            (r#""event":"SetGCHandle""#, 5),
            (r#""Kind":3,"#, 3),
            (r#""Kind":2,"#, 2),
            (r#""event":"DestroyGCHandle""#, 1),
            (r#""BytesAllocated":4096"#, 1),
            (r#""BytesFreed":96"#, 1),
            (r#""event":"PinObjectAtGCTime""#, 3),
            (
                r#""PinnedObjectCount":3,"SinkBlockCount":1,"GCHandleCount":4"#,
                1,
            ),
        ],
    ),
    (
        "throw, throw.filters, throw.finallys, throw.inner, throw.rethrow",
        r#"<<process>>; at "2s" { throw 2 filters=3 finallys=1 inner=#true rethrow=#true } }
<<session>>"#,
        &[
            (r#""ExceptionFlags":17"#, 2),
            (r#""ExceptionFlags":21"#, 2),
            (r#""event":"ExceptionFilterStart""#, 6),
            (r#""event":"ExceptionFilterStop""#, 6),
            (r#""event":"ExceptionFinallyStart""#, 2),
            (r#""event":"ExceptionFinallyStop""#, 2),
            // The first block is never left.
            (r#""event":"ExceptionCatchStart""#, 4),
            (r#""event":"ExceptionCatchStop""#, 2),
            (r#""event":"ExceptionThrownStop""#, 2),
        ],
    ),
    (
        "contend, wait",
        r#"process "App.exe" threads=3 { clr "core" version="9.0" { <<assembly>> }; at "2s" { contend 40; wait "5ms" } }
<<session>>"#,
        &[
            (r#""event":"ContentionLockCreated""#, 4),
            (r#""event":"ContentionStart_V2""#, 40),
            (r#""event":"ContentionStop_V1""#, 40),
            (r#""event":"WaitHandleWaitStart""#, 1),
            (r#""event":"WaitHandleWaitStop""#, 1),
        ],
    ),
    (
        "queue-work, queue-io, grow-pool, grow-pool.io, shrink-pool, shrink-pool.io",
        r#"process "App.exe" threads=3 { clr "core" version="8.0" { <<assembly>> }
    at "2s" { queue-work 5; queue-io 2 }
    at "3s" { grow-pool 3; shrink-pool 2; grow-pool 2 io=#true; shrink-pool 1 io=#true } }
<<session>>"#,
        &[
            (r#""event":"ThreadPoolMinMaxThreads""#, 1),
            // The pool of .NET 6 reports its queue by another provider.
            (r#""event":"ThreadPoolEnqueue""#, 0),
            (r#""event":"ThreadPoolDequeue""#, 0),
            (r#""event":"ThreadPoolWorkerThreadWait""#, 1),
            (r#""event":"ThreadPoolIOPack""#, 2),
            (r#""event":"ThreadPoolIOEnqueue""#, 2),
            (r#""event":"ThreadPoolIODequeue""#, 2),
            (r#""event":"IOThreadCreate_V1""#, 3),
            (r#""event":"IOThreadTerminate_V1""#, 1),
            (
                r#""event":"ThreadPoolWorkerThreadStart","fields":{"ActiveWorkerThreadCount":4"#,
                1,
            ),
            (r#""event":"ThreadPoolWorkerThreadStop""#, 2),
            (r#""event":"ThreadPoolWorkerThreadAdjustmentSample""#, 2),
            (r#""event":"ThreadPoolWorkerThreadAdjustmentAdjustment""#, 2),
            (r#""event":"ThreadPoolWorkerThreadAdjustmentStats""#, 2),
        ],
    ),
    (
        "load-image, unload-image, start-thread, end-thread, exit",
        r#"<<process>>; at "2s" { load-image "C:\\late.dll"; start-thread }; at "3s" { unload-image "C:\\late.dll"; end-thread }; at "4s" { exit } }
<<session>>"#,
        &[
            (r#"late.dll"#, 2),
            (r#""event":"ThreadCreating""#, 1),
            (r#""event":"ThreadRunning""#, 1),
            // .NET Core has no event of the end of a thread.
            (r#""event":"ThreadTerminated""#, 0),
            (r#""exited_ns":4"#, 1),
        ],
    ),
    (
        "expect, expect.verdict, expect.rules",
        r#"<<process>> }
<<session>>
expect "s.etl" verdict="incomplete" rules="rundown.none symbols.module-unknown"
expect verdict="complete""#,
        &[("file s.expected.json", 1)],
    ),
    (
        "end",
        r#"<<process>> }
at "1s" { session "s" file="s.etl" }
end "2s""#,
        &[(r#""stopped_ns":"#, 0)],
    ),
    (
        "param, repeat, repeat.as, include",
        r#"include "app.kdl"
param "many" 2
repeat "{many}" as="k" { session "s{k}" file="s{k}.etl" }
repeat 1 { session "last{n}" file="t.etl" }"#,
        &[
            ("file s1.etl", 1),
            ("file s2.etl", 1),
            ("file s3.etl", 0),
            (r#""session":"last1""#, 1),
            (r#""name":"App.exe""#, 1),
        ],
    ),
    (
        "edit, edit delete, edit copy, edit copy.times",
        r#"<<process>>; at "2s" { contend 4 } }
<<session>>
edit "s.etl" { delete "ContentionStart" nth=1; copy "ContentionStop" nth=-1 times=3 }"#,
        &[
            ("id 81 v1", 3),
            ("id 81 v1 level 4 keyword 0x4000 hook 0x0 pid 1", 3),
            ("id 91 v1", 7),
        ],
    ),
    (
        "edit alter, edit alter.set-pid, edit alter.set-tid, edit alter.set-processor, edit alter.set-provider, edit alter.set-id, edit alter.set-version, edit alter.set-level, edit alter.set-opcode, edit alter.set-keyword, edit alter.set-hook, edit alter.shift, edit alter.cut, edit alter.keep, edit alter.grow",
        r#"<<process>>; at "2s" { contend 4; throw } }
<<session>>
edit "s.etl" {
    alter "ContentionStart" nth=1 set-pid=7 set-tid=8 set-id=9 set-version=3 set-level=2 set-keyword=0x77 shift=5 grow=2 { ContentionFlags 1 }
    alter "ContentionStop" nth=1 cut=4 set-opcode=7
    alter "ContentionStop" nth=2 keep=1 set-provider="rundown"
    alter "ExceptionThrown" set-processor=0
    alter "DCEnd" nth=1 set-hook=0x502
}"#,
        &[
            ("id 9 v3 level 2 keyword 0x77 hook 0x0 pid 7 tid 8", 1),
            ("payload 5", 1),
            ("payload 7", 1),
            ("record a669021c-c450-4609-a035-5af59af4df18 id 91", 1),
        ],
    ),
    (
        "edit move, edit move.before, edit move.after, edit move.of-pid, edit swap, edit disorder",
        r#"process "App.exe" pid=4004 { clr "core" version="6.0.100" { <<assembly>> }; at "2s" { contend 4; throw } }
<<session>>
edit "s.etl" { move "ExceptionThrown" before="ContentionStart"; swap "ContentionStart" nth=2; disorder "ContentionStop" nth=3 }
edit "s.etl" { move "ExceptionThrown" after="ContentionStop" of-pid=4004 }"#,
        &[("id 80 v1", 1), ("id 81 v1", 4)],
    ),
    (
        "edit header, edit header.set, edit buffer, edit buffer.set, edit damage",
        r#"<<process>>; at "2s" { contend 4; throw } }
<<session>>
edit "s.etl" { header "events-lost" set=33; header "build" raise=2; buffer 2 "sequence" set=99; damage -1 }"#,
        &[
            ("events_lost: 33", 1),
            ("build: 19047", 1),
            ("number: 99, expected:", 1),
        ],
    ),
    (
        "fault lost-events, fault lost-events.every, fault lost-buffers, fault lost-buffers.every",
        r#"<<process>>; every "1ms" from="1.1s" until="3s" { contend 5 } }
at "1s" { session "a" file="a.etl" { enable "runtime" level=5; fault "lost-events" every=4 } }
at "1s" { session "b" file="b.etl" buffer-kb=8 { enable "runtime" level=5; fault "lost-buffers" every=3 } }
at "4s" { stop "a"; stop "b" }"#,
        &[
            (r#""a":"lost""#, 1000),
            (r#""session":"b","sequence":3,"#, 1),
            (r#""outcome":"lost""#, 10),
        ],
    ),
    (
        "fault cut-rundown, fault cut-rundown.after, fault complete-missing, fault wrong-keyword",
        r#"<<process>> }
at "1s" { session "a" file="a.etl" { enable "rundown" keywords=0x118 level=5; fault "cut-rundown" after=5 } }
at "2s" { session "b" file="b.etl" { enable "rundown" keywords=0x118 level=5; fault "complete-missing" } }
at "3s" { session "c" file="c.etl" { enable "rundown" keywords=0x118 level=5; fault "wrong-keyword" } }
at "4s" { stop "a"; stop "b"; stop "c" }"#,
        &[
            (r#""a":"recorded""#, 5),
            (r#""a":"disabled""#, 5),
            (r#""b":"missing""#, 1),
            (
                r#""at_ns":3000000000,"filetime":134120196030000000,"provider_guid":"a669021c-c450-4609-a035-5af59af4df18","level":5,"match_any_keyword":"0x98""#,
                1,
            ),
        ],
    ),
    (
        "fault unmerged, fault skew, fault skew.ticks",
        r#"<<process>>; at "2s" { contend } }
at "1s" { session "a" file="a.etl" { enable "runtime"; fault "skew" ticks=555 } ; session "b" file="b.etl" { enable "runtime"; fault "unmerged" } }
at "3s" { stop "a"; stop "b"; merge "a.etl b.etl" into="c.etl" }"#,
        &[(r#""skew_ticks":555"#, 1), (r#""inputs":["a.etl"]"#, 1)],
    ),
    (
        "fault truncated, fault truncated.percent, fault torn, fault flipped, fault flipped.bits, fault circular-wrap, fault circular-wrap.kb, fault not-closed",
        r#"<<process>>; every "1ms" from="1.1s" until="3s" { contend 5 } }
at "1s" {
    session "a" file="a.etl" { enable "runtime" level=5; fault "truncated" percent=50 }
    session "b" file="b.etl" { enable "runtime" level=5; fault "torn" }
    session "c" file="c.etl" { enable "runtime" level=5; fault "flipped" bits=4 }
    session "d" file="d.etl" buffer-kb=16 { enable "runtime" level=5; fault "circular-wrap" kb=256 }
    session "e" file="e.etl" { enable "runtime" level=5; fault "not-closed" }
}
at "4s" { stop "a"; stop "b"; stop "c"; stop "d"; stop "e" }"#,
        &[
            (r#""fault":"truncated","file":"a.etl""#, 1),
            (r#""fault":"torn","file":"b.etl""#, 1),
            (r#""fault":"flipped","file":"c.etl""#, 4),
            ("file d.etl of 262144 bytes", 1),
            (r#""outcome":"overwritten""#, 1),
        ],
    ),
    (
        "open-file, close-file, read-file, read-file.bytes, read-file.offset, read-file.cached, write-file, write-file.bytes, write-file.offset, write-file.cached, flush-file, delete-file",
        r#"process "App.exe" threads=1 { at "1s" {
    open-file "C:\\a"; read-file "C:\\a" bytes=700 offset=5000; read-file "C:\\a" bytes=600 cached=#true; close-file "C:\\a"
    write-file "C:\\b" bytes=9 offset=100; write-file "C:\\b" cached=#true bytes=8; flush-file "C:\\b"; delete-file "C:\\b"
} }"#,
        &[
            (r#""operation":"open","path":"C:\\a""#, 1),
            (r#""offset":5000,"bytes":700,"cached":false"#, 1),
            (r#""offset":0,"bytes":600,"cached":true"#, 1),
            // Two reads; one needs a disk, in two sectors.
            (r#""operation":"read","path":"C:\\a""#, 3),
            (r#""bytes":1536"#, 1),
            (r#""operation":"close","path":"C:\\a""#, 1),
            // Opened and closed for each.
            (r#""operation":"open","path":"C:\\b""#, 4),
            (r#""offset":100,"bytes":9,"cached":false"#, 1),
            (r#""bytes":8,"cached":true"#, 1),
            (r#""operation":"flush","path":"C:\\b""#, 2),
            (r#""operation":"delete","path":"C:\\b""#, 1),
            (r#""operation":"close","path":"C:\\b""#, 4),
        ],
    ),
    (
        "connect, accept, accept.port, disconnect, send, send.bytes, send.udp, send.port, receive, receive.bytes, receive.udp, receive.port",
        r#"machine { network-card "E" ip="10.0.0.5" }
process "App.exe" threads=1 { at "1s" {
    connect "10.0.0.9:443"; send "10.0.0.9:443" bytes=77; receive "10.0.0.9:443" bytes=78; disconnect "10.0.0.9:443"
    accept "10.0.0.8:50000" port=8080
    send "10.0.0.1:53" bytes=40 udp=#true port=6000; receive "10.0.0.2:53" bytes=41 udp=#true port=6001
} }"#,
        &[
            (
                r#""operation":"connect","protocol":"tcp","local":"10.0.0.5:49152","remote":"10.0.0.9:443","bytes":0"#,
                1,
            ),
            (
                r#""operation":"send","protocol":"tcp","local":"10.0.0.5:49152","remote":"10.0.0.9:443","bytes":77"#,
                1,
            ),
            (
                r#""operation":"receive","protocol":"tcp","local":"10.0.0.5:49152","remote":"10.0.0.9:443","bytes":78"#,
                1,
            ),
            (r#""operation":"disconnect","protocol":"tcp""#, 1),
            (
                r#""operation":"accept","protocol":"tcp","local":"10.0.0.5:8080","remote":"10.0.0.8:50000""#,
                1,
            ),
            (
                r#""operation":"send","protocol":"udp","local":"10.0.0.5:6000","remote":"10.0.0.1:53","bytes":40"#,
                1,
            ),
            (
                r#""operation":"receive","protocol":"udp","local":"10.0.0.5:6001","remote":"10.0.0.2:53","bytes":41"#,
                1,
            ),
        ],
    ),
];

#[test]
fn each_example_does_what_it_says() {
    let mut wrong = Vec::new();
    for (words, script, expected) in EXAMPLES {
        let found = match outcome(script, &[]) {
            Ok(found) => found,
            Err(why) => {
                wrong.push(format!("{words}: {why}"));
                continue;
            }
        };
        for (text, times) in *expected {
            let count = found.matches(text).count();
            if count < *times || *times == 0 && count > 0 {
                wrong.push(format!(
                    "{words}: {text} is there {count} times, not {times}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_parameter_can_be_set_from_outside() {
    let script = "param \"many\" 1\nrepeat \"{many}\" { session \"s{n}\" file=\"s{n}.etl\" }";
    let outcome = |set: &[(&str, &str)]| outcome(script, set).unwrap();
    assert!(!outcome(&[]).contains("file s2.etl"));
    assert!(outcome(&[("many", "2")]).contains("file s2.etl"));
}
