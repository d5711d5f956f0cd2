//! Lines of `dotnet-trace`, and settings of .NET processes.

use super::collection::is_hashed;
use super::*;
use crate::enable::{EventKey, Variant};
use etl_schema::tables::Registry;

fn collected(line: &str) -> Collection {
    let read: CommandLine = line.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
    let again: CommandLine = read.to_string().parse().unwrap();
    assert_eq!(again, read, "{read}");
    match &read.actions[..] {
        [Action::Collect(collection)] => (**collection).clone(),
        other => panic!("{line}: {other:?}"),
    }
}

/// The providers of a recording, as `dotnet-trace` prints them.
fn enabled(collection: &Collection) -> Vec<String> {
    let mut out = Vec::new();
    for spec in &collection.providers {
        let with = spec.enablement(Registry::builtin()).unwrap();
        assert_eq!(with.variant, Variant::EventPipe);
        let name = match &spec.provider {
            ProviderRef::Name(name) | ProviderRef::Hashed(name) => name,
            other => panic!("{other:?}"),
        };
        out.push(format!("{name} {:#x} {}", with.any, with.level));
    }
    out
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn collect_enables_what_dotnet_trace_prints() {
    // The tables of the tool's own tests.
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let sampler = "Microsoft-DotNETCore-SampleProfiler 0xf00000000000 4";
    let common = format!("{runtime} 0x100003801d 4");
    let cases: &[(&str, &[&str])] = &[
        ("", &[&common, sampler]),
        ("--providers Foo:0x1:4", &["Foo 0x1 4"]),
        (
            "--providers Foo:0x1:4,Bar:0x2:4",
            &["Foo 0x1 4", "Bar 0x2 4"],
        ),
        ("--providers Foo", &["Foo 0x0 4"]),
        (
            "--profile dotnet-common,dotnet-sampled-thread-time --providers Foo:0x1:4",
            &["Foo 0x1 4", &common, sampler],
        ),
        ("--clrevents gc+jit", &[&format!("{runtime} 0x11 4")]),
        (
            "--clrevents gc+gchandle+exception --clreventlevel Verbose",
            &[&format!("{runtime} 0x8003 5")],
        ),
        (
            "--profile dotnet-common --clrevents gc --clreventlevel verbose",
            &[&common],
        ),
        (
            "--providers Microsoft-Windows-DotNETRuntime:0x40000000:Verbose --profile dotnet-common",
            &[&format!("{runtime} 0x40000000 5")],
        ),
        ("--providers 'Foo:1:4,foo:2:Warning'", &["Foo 0x3 4"]),
        ("--profile gc-verbose", &[&format!("{runtime} 0x8003 5")]),
    ];
    for (options, expected) in cases {
        let collection = collected(&format!("dotnet-trace collect --process-id 4711 {options}"));
        assert_eq!(enabled(&collection), *expected, "{options}");
        assert_eq!(collection.process, CollectedProcess::Id(4711));
    }
    let ignored = collected("dotnet-trace collect -p 1 --profile dotnet-common --clrevents gc");
    assert!(ignored.ignores_clr_events());
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn collect_reads_every_option() {
    let line = "dotnet-trace collect -n orders -o orders.nettrace --buffersize 512 --duration \
                00:00:00:30 --format speedscope --rundown false --providers \
                System.Runtime:0xffffffffffffffff:5:EventCounterIntervalSec=1";
    let collection = collected(line);
    assert_eq!(collection.process, CollectedProcess::Name("orders".into()));
    assert_eq!(collection.file.as_deref(), Some("orders.nettrace"));
    assert_eq!(collection.buffer_mb, Some(512));
    assert_eq!(collection.duration.as_deref(), Some("00:00:00:30"));
    assert_eq!(collection.format, Some("Speedscope"));
    assert_eq!(collection.rundown_keywords(), None);
    let [counters] = &collection.providers[..] else {
        panic!("one provider");
    };
    assert_eq!(counters.arguments, "EventCounterIntervalSec=1");
    assert!(is_hashed(counters));
    let child = collected("dotnet-trace collect --show-child-io -- dotnet app.dll --port 80");
    let command = ["dotnet", "app.dll", "--port", "80"].map(str::to_owned);
    assert_eq!(child.process, CollectedProcess::Command(command.to_vec()));
    assert_eq!(child.rundown_keywords(), Some(RUNDOWN_KEYWORDS));
    assert!(collected("dotnet-trace collect-linux").has_kernel);
}

#[test]
fn collect_with_a_mask_of_0_gets_events_without_keyword() {
    let collection = collected("dotnet-trace collect -p 1 --providers Foo:0:5");
    let with = collection.providers[0]
        .enablement(Registry::builtin())
        .unwrap();
    let event = |keyword| EventKey {
        id: 1,
        level: 4,
        keyword,
    };
    assert!(with.admits(&event(0)) && !with.admits(&event(1)));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn settings_are_a_recording_of_their_process() {
    let line = "DOTNET_EnableEventPipe=1 DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:\
                1CCBD:5,Foo DOTNET_EventPipeOutputPath=app.nettrace \
                DOTNET_EventPipeCircularMB=400 dotnet app.dll";
    let collection = collected(line);
    let expected = ["Microsoft-Windows-DotNETRuntime 0x1ccbd 5", "Foo 0x0 5"];
    assert_eq!(enabled(&collection), expected);
    // Numbers of settings are hexadecimal.
    assert_eq!(collection.buffer_mb, Some(1024));
    let command = ["dotnet", "app.dll"].map(str::to_owned);
    assert_eq!(
        collection.process,
        CollectedProcess::Command(command.to_vec())
    );
    let old = collected("export COMPlus_EnableEventPipe=1");
    assert_eq!(
        enabled(&old),
        [
            "Microsoft-Windows-DotNETRuntime 0x4c14fccbd 5",
            "Microsoft-Windows-DotNETRuntimePrivate 0x4002000b 5",
            "Microsoft-DotNETCore-SampleProfiler 0x0 5",
        ]
    );
    let off = collected("set DOTNET_EnableEventPipe=0");
    assert!(off.providers.is_empty());
    assert_eq!(off.rundown_keywords(), None);
}

#[test]
fn script_joins_settings_of_several_lines() {
    let script = Script::parse(
        "export DOTNET_EnableEventPipe=1\nexport DOTNET_EventPipeConfig=Foo:1:5\nxperf -stop a\n",
    );
    let texts: Vec<&str> = script.commands.iter().map(|c| c.text.as_str()).collect();
    let settings = "DOTNET_EnableEventPipe=1 DOTNET_EventPipeConfig=Foo:1:5";
    assert_eq!(texts, [settings, "xperf -stop a"]);
    assert_eq!(enabled(&collected(settings)), ["Foo 0x1 5"]);
}

#[test]
fn collect_refuses_what_dotnet_trace_refuses() {
    for (line, wrong) in [
        ("dotnet-trace collect --profile cpu", "cpu"),
        ("dotnet-trace collect --clrevents gc+jut", "--clrevents"),
        ("dotnet-trace collect --providers :1:5", ":1:5"),
        ("dotnet-trace collect --providers Foo:x", "Foo:x"),
        ("dotnet-trace collect --providers Foo:1:loud", "Foo:1:loud"),
        ("dotnet-trace collect --providr Foo", "--providr"),
        ("dotnet-trace ps", "ps"),
        ("dotnet-trace collect --duration 30", "30"),
    ] {
        let error = line.parse::<CommandLine>().unwrap_err();
        let found = &line[error.span.clone()];
        assert!(
            found.contains(wrong) || wrong == "--clrevents",
            "{line}: {found}"
        );
    }
}
