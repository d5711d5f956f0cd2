//! Views against the general decoder, on every version in the tables and on payloads cut short.

use std::collections::HashMap;
use std::sync::Arc;

use etl_format::constants::{PointerSize, group_guid, hook};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::{clr, kernel};
use crate::decode::{Decoder, Value};
use crate::model::Identity;
use crate::tables::Registry;
use crate::testing::strategies::payloads_of;

/// Values of a payload by field name, by the general decoder.
fn named<'a>(
    decoder: &'a Decoder,
    payload: &'a [u8],
    pointers: PointerSize,
) -> HashMap<&'a str, Value<'a>> {
    decoder
        .fields(payload, pointers)
        .map(|(field, value)| (&*field.name, value))
        .collect()
}

fn uint(values: &HashMap<&str, Value<'_>>, name: &str) -> u64 {
    values[name].as_u64().unwrap()
}

fn text<'a>(values: &HashMap<&str, Value<'a>>, name: &str) -> &'a [u8] {
    match values[name] {
        Value::Utf16(text) => text.bytes(),
        Value::Ansi(bytes) => bytes,
        _ => panic!("{name} is no text"),
    }
}

/// A payload of an event, drawn from a seed.
fn payload(decoder: &Decoder, seed: u64, pointers: PointerSize) -> Option<Vec<u8>> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let payloads = payloads_of(Arc::clone(decoder.schema()), pointers);
    let (_, payload) = payloads.new_tree(&mut runner).ok()?.current();
    Some(payload)
}

/// What a view returns, as text that can be compared: the values only.
fn clr_text(decoded: &clr::Decoded<'_>) -> String {
    let event = match decoded.event {
        clr::Event::Module(change, module) => {
            format!(
                "{change:?} {} {} {:?}",
                module.id,
                module.assembly,
                module.text()
            )
        }
        event => format!("{event:?}"),
    };
    let text = match decoded.event {
        clr::Event::Method(_, method) => format!("{:?}", method.text()),
        clr::Event::Assembly(_, assembly) => format!("{:?}", assembly.name()),
        clr::Event::AppDomain(_, domain) => format!("{:?}", domain.name()),
        _ => String::new(),
    };
    format!("{:?} {event} {text}", decoded.instance)
}

fn check_clr(
    decoder: &Decoder,
    provider: clr::ClrProvider,
    id: u16,
    version: u8,
    bytes: &[u8],
    p: PointerSize,
) {
    let of = named(decoder, bytes, p);
    let decoded = clr::decode_event(provider, id, version, bytes, p).unwrap();
    let symbol = &decoder.schema().name;
    if let (Some(instance), Some(value)) = (decoded.instance, of.get("ClrInstanceID")) {
        assert_eq!(Some(u64::from(instance)), value.as_u64(), "{symbol}");
    }
    if decoded.exact {
        assert!(decoder.check(bytes, p).is_exact(), "{symbol}");
    }
    match decoded.event {
        clr::Event::Method(_, m) => {
            let expected = [
                "MethodID",
                "ModuleID",
                "MethodStartAddress",
                "MethodSize",
                "MethodFlags",
            ]
            .map(|name| uint(&of, name));
            assert_eq!(
                [m.id, m.module, m.start, m.size.into(), m.flags.into()],
                expected
            );
            assert!(decoded.exact || !m.is_named(), "{symbol}");
            let names = m.text().unwrap();
            assert_eq!(u64::from(names.token), uint(&of, "MethodToken"));
            assert_eq!(names.version, of.get("ReJITID").and_then(Value::as_u64));
            assert_eq!(m.is_named(), of.contains_key("MethodName"));
            if m.is_named() {
                assert_eq!(names.namespace, text(&of, "MethodNamespace"));
                assert_eq!(names.name, text(&of, "MethodName"));
                assert_eq!(names.signature, text(&of, "MethodSignature"));
            }
        }
        clr::Event::Module(_, m) => {
            let expected = ["ModuleID", "AssemblyID", "ModuleFlags"].map(|name| uint(&of, name));
            assert_eq!([m.id, m.assembly, m.flags.into()], expected);
            let all = m.text();
            assert_eq!(all.il_path, text(&of, "ModuleILPath"));
            assert_eq!(all.native_path, text(&of, "ModuleNativePath"));
            assert_eq!(m.has_identity(), of.contains_key("ManagedPdbSignature"));
            for (pdb, side) in [(all.il_pdb, "Managed"), (all.native_pdb, "Native")] {
                let signature = of.get(&*format!("{side}PdbSignature"));
                let Some(Value::Guid(guid)) = signature else {
                    continue;
                };
                assert_eq!(
                    pdb.map_or(etl_format::Guid::ZERO, |pdb| pdb.signature),
                    *guid
                );
                let age = uint(&of, &format!("{side}PdbAge"));
                assert!(pdb.is_none_or(|pdb| u64::from(pdb.age) == age));
            }
        }
        clr::Event::DomainModule(_, m) => {
            let expected = ["ModuleID", "AssemblyID", "AppDomainID"].map(|name| uint(&of, name));
            assert_eq!([m.module, m.assembly, m.domain], expected);
        }
        clr::Event::Assembly(_, a) => {
            assert_eq!(
                [a.id, a.domain],
                ["AssemblyID", "AppDomainID"].map(|n| uint(&of, n))
            );
            assert_eq!(a.name(), Some(text(&of, "FullyQualifiedAssemblyName")));
        }
        clr::Event::AppDomain(_, domain) => {
            assert_eq!(domain.id, uint(&of, "AppDomainID"));
            assert_eq!(u64::from(domain.flags), uint(&of, "AppDomainFlags"));
            assert_eq!(domain.name(), Some(text(&of, "AppDomainName")));
        }
        clr::Event::Runtime { version, sku } => {
            let [a, b, c, d] = version.map(u64::from);
            let names = [
                "VMMajorVersion",
                "VMMinorVersion",
                "VMBuildNumber",
                "VMQfeNumber",
                "Sku",
            ];
            assert_eq!([a, b, c, d, sku.into()], names.map(|name| uint(&of, name)));
        }
        clr::Event::JitStart(id) | clr::Event::IlMap(id) => assert_eq!(id, uint(&of, "MethodID")),
        clr::Event::Exception(at) => assert_eq!(at, uint(&of, "ExceptionEIP")),
        clr::Event::EntryPoint(at) => assert_eq!(at, uint(&of, "EntryPoint")),
        clr::Event::Stack { stated, frames } => {
            assert_eq!(u64::from(stated), uint(&of, "FrameCount"));
            let Value::Array(stack) = of["Stack"] else {
                panic!("no array")
            };
            let expected: Vec<u64> = stack.iter().filter_map(|v| v.as_u64()).collect();
            assert_eq!(frames.iter().collect::<Vec<_>>(), expected);
        }
        clr::Event::Init(_) | clr::Event::Complete(_) | clr::Event::Other => {}
    }
}

fn check_kernel(decoder: &Decoder, hook: u16, version: u8, bytes: &[u8], p: PointerSize) {
    let of = named(decoder, bytes, p);
    let fields = kernel::Fields::new(hook, version, bytes, p).unwrap();
    let names = [
        "TThreadId",
        "ThreadId",
        "StackThread",
        "IssuingThreadId",
        "NewThreadId",
    ];
    let thread = names
        .iter()
        .find_map(|name| of.get(name))
        .and_then(Value::as_u64);
    assert_eq!(fields.thread_ids()[0].map(u64::from), thread, "{hook:#x}");
    let process = of
        .get("ProcessId")
        .or(of.get("StackProcess"))
        .or(of.get("PID"))
        .and_then(Value::as_u64);
    assert_eq!(
        fields.process_id().map(u64::from),
        process.map(|p| p & 0xffff_ffff),
        "{hook:#x}"
    );
    let Some(event) = fields.event() else {
        assert!(!kernel::is_read(hook), "{hook:#x}");
        return;
    };
    assert!(kernel::is_read(hook), "{hook:#x}");
    match event {
        kernel::Event::Process(_, process) => {
            assert_eq!(
                Some(u64::from(process.pid)),
                Some(uint(&of, "ProcessId") & 0xffff_ffff)
            );
            assert_eq!(process.name(), Some(text(&of, "ImageFileName")));
            if let Some(line) = process.command_line() {
                assert_eq!(line, text(&of, "CommandLine"));
            }
            let user = match of["UserSID"] {
                Value::Sid(sid) => sid.0,
                _ => &[],
            };
            assert_eq!(process.user(), Some(user));
        }
        kernel::Event::Image(_, image) => {
            let [base, size] = ["ImageBase", "ImageSize"].map(|name| uint(&of, name));
            assert_eq!((image.base, image.size), (base, size));
            assert_eq!(image.path(), Some(text(&of, "FileName")));
            let linked = of.get("TimeDateStamp").and_then(Value::as_u64);
            assert_eq!(image.link_time().map(u64::from), linked);
        }
        kernel::Event::Sample { address, .. } => {
            assert_eq!(address, uint(&of, "InstructionPointer"));
        }
        kernel::Event::Stack { at, frames, .. } => {
            assert_eq!(at.cast_unsigned(), uint(&of, "EventTimeStamp"));
            let Value::Array(stack) = of["Stack"] else {
                panic!("no array")
            };
            assert_eq!(frames.len(), stack.len());
        }
        kernel::Event::StackKey { key, .. } | kernel::Event::StackDefinition { key, .. } => {
            assert_eq!(key, uint(&of, "StackKey"));
        }
        kernel::Event::Thread(..) | kernel::Event::ThreadName(_) => {}
    }
}

/// The hooks that the tables of the kernel describe, with version and decoder.
fn kernel_events() -> Vec<(u16, u8, &'static Decoder)> {
    let mut out = Vec::new();
    for group in 0..0x20u8 {
        let Some(provider) = group_guid(group).and_then(|g| Registry::classic().provider(g)) else {
            continue;
        };
        for event in &provider.events {
            let Identity::Classic { opcode, version } = event.schema.identity else {
                continue;
            };
            let mut hook = u16::from_le_bytes([opcode, group]);
            if hook == 0x140a {
                hook = hook::IMAGE_LOAD;
            }
            let decoder = Registry::classic().decoder(provider.guid, event.schema.identity);
            out.push((hook, version as u8, decoder.unwrap()));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn clr_views_agree_with_the_decoder(
        seed in any::<u64>(),
        cut in any::<prop::sample::Index>(),
    ) {
        for provider in [clr::ClrProvider::Runtime, clr::ClrProvider::Rundown] {
            for event in &Registry::builtin().provider(provider.guid()).unwrap().events {
                let Identity::Modern { id, version } = event.schema.identity else { continue };
                let decoder = Registry::builtin().decoder(provider.guid(), event.schema.identity).unwrap();
                for p in [PointerSize::P4, PointerSize::P8] {
                    let Some(bytes) = payload(decoder, seed, p) else { continue };
                    check_clr(decoder, provider, id, version, &bytes, p);
                    let short = &bytes[..cut.index(bytes.len() + 1)];
                    if let Some(decoded) = clr::decode_event(provider, id, version, short, p) {
                        if decoded.exact {
                            prop_assert!(decoder.check(short, p).is_exact());
                        }
                        clr_text(&decoded);
                    }
                    // A newer version is read as the newest one that is known, and is never exact.
                    let newer = clr::decode_event(provider, id, 200, &bytes, p);
                    let is_exact = newer.is_some_and(|newer| {
                        newer.exact && !matches!(newer.event, clr::Event::Stack { .. })
                    });
                    prop_assert!(!is_exact);
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn kernel_views_agree_with_the_decoder(
        seed in any::<u64>(),
        cut in any::<prop::sample::Index>(),
    ) {
        for (hook, version, decoder) in kernel_events() {
            for p in [PointerSize::P4, PointerSize::P8] {
                let Some(bytes) = payload(decoder, seed, p) else { continue };
                if kernel::Fields::new(hook, version, &bytes, p).is_none() {
                    prop_assert!(!kernel::is_read(hook), "{hook:#x}");
                    continue;
                }
                check_kernel(decoder, hook, version, &bytes, p);
                let short = &bytes[..cut.index(bytes.len() + 1)];
                let fields = kernel::Fields::new(hook, version, short, p).unwrap();
                let whole = kernel::Fields::new(hook, version, &bytes, p).unwrap();
                for (short, whole) in fields.thread_ids().into_iter().zip(whole.thread_ids()) {
                    prop_assert!(short.is_none() || short == whole);
                }
                if let Some(kernel::Event::Process(_, process)) = fields.event() {
                    let _ = (process.name(), process.command_line(), process.user());
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn every_hook_that_is_read_has_a_layout() {
    for hook in (0..0x2000).filter(|&hook| kernel::is_read(hook)) {
        for version in 0..6 {
            let fields = kernel::Fields::new(hook, version, &[0; 200], PointerSize::P8);
            assert!(
                fields.and_then(kernel::Fields::event).is_some(),
                "{hook:#06x} {version}"
            );
        }
    }
    assert!(kernel::Fields::new(hook::CSWITCH, 4, &[1; 24], PointerSize::P8).is_some());
    let size = |event: clr::PlainEvent| (event.min_size, event.is_il_map);
    assert_eq!(
        clr::plain_event(clr::ClrProvider::Runtime, 1).map(size),
        Some((0, false))
    );
    assert_eq!(
        clr::plain_event(clr::ClrProvider::Runtime, 190).map(size),
        Some((8, true))
    );
    assert_eq!(clr::plain_event(clr::ClrProvider::Runtime, 80), None);
}
