//! Packed traces: `.etl.zip`, `.gz` and `.zst`.

use std::io::{Cursor, Write};
use std::path::Path;

use crate::common::{directory, etlkit, etlkit_bytes, etlkit_piped, etlverify, trace};
use zip::write::SimpleFileOptions;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        out.start_file(*name, SimpleFileOptions::default()).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// One trace in every packing.
fn forms() -> Vec<(&'static str, Vec<u8>)> {
    let trace = trace();
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut plain = zip::ZipWriter::new(Cursor::new(Vec::new()));
    plain.start_file("x/t.etl", stored).unwrap();
    plain.write_all(&trace).unwrap();
    vec![
        ("t.etl.gz", gzip(&trace)),
        ("t.etl.zst", zstandard(&trace)),
        (
            "t.etl.zip",
            archive(&[("notes.txt", b"hello"), ("t.etl", &trace)]),
        ),
        ("stored.zip", plain.finish().unwrap().into_inner()),
        // The file name does not matter.
        ("t.log", gzip(&trace)),
    ]
}

/// Commands that read a trace and print.
const PRINTING: [&[&str]; 7] = [
    &["info"],
    &["info", "--format", "json"],
    &["info", "--no-mmap"],
    &["dump", "--format", "jsonl"],
    &["dump", "--file-order"],
    &["verify"],
    &["verify", "--format", "json", "--no-mmap"],
];

#[test]
fn readers_accept_every_packing() {
    let here = directory(&[("t.etl", &trace())]);
    let plain: Vec<_> = PRINTING
        .map(|args| etlkit(here.path(), &[args, &["t.etl"]].concat()))
        .into();
    for (name, bytes) in forms() {
        std::fs::write(here.path().join(name), &bytes).unwrap();
        for (args, plain) in PRINTING.iter().zip(&plain) {
            let said = etlkit(here.path(), &[args, &[name][..]].concat());
            assert_eq!(
                said.out.replace(name, "t.etl"),
                plain.out,
                "{args:?} {name}"
            );
            assert_eq!(
                (said.code, said.err.replace(name, "t.etl")),
                (plain.code, plain.err.clone())
            );
            let piped = etlkit_piped(&bytes, &[args, &["-"][..]].concat());
            assert_eq!(
                piped.out.replace("(standard input)", "t.etl"),
                plain.out,
                "{args:?} < {name}"
            );
        }
        let said = etlverify(here.path(), &["--together", name, "t.etl"]);
        assert!(said.out.contains(name), "{}", said.err);
        let said = etlkit(here.path(), &["diff", "t.etl", name]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{name}");
    }
}

#[test]
fn writers_accept_every_packing() {
    let commands: [&[&str]; 7] = [
        &["merge"],
        &["merge", "--no-mmap"],
        &["repair"],
        &["compress"],
        &["decompress", "--no-mmap"],
        &["slice", "--id", "1"],
        &["scrub", "--salt", "s"],
    ];
    for command in commands {
        let write = |bytes: &[u8]| etlkit_bytes(bytes, &[command, &["-", "-o", "-"]].concat()).0;
        let plain = write(&trace());
        assert!(plain.len() > 0x300, "{command:?}");
        let here = directory(&[]);
        for (name, bytes) in forms() {
            assert_eq!(write(&bytes), plain, "{command:?} < {name}");
            std::fs::write(here.path().join(name), &bytes).unwrap();
            let out = format!("of-{name}");
            let said = etlkit(here.path(), &[command, &[name, "-o", &out]].concat());
            assert!(said.code < 2, "{command:?} {name}: {}", said.err);
            assert_eq!(
                std::fs::read(here.path().join(out)).unwrap(),
                plain,
                "{command:?} {name}"
            );
        }
    }
}

#[test]
fn verify_reads_directory_of_packed_traces() {
    let here = directory(&[]);
    std::fs::create_dir(here.path().join("traces")).unwrap();
    for (name, bytes) in forms() {
        std::fs::write(here.path().join("traces").join(name), bytes).unwrap();
    }
    let said = etlverify(here.path(), &["traces"]);
    assert_eq!(said.out.matches("verdict").count(), 3, "{}", said.out);
}

#[cfg(unix)]
#[test]
fn named_pipes_are_read() {
    let here = directory(&[("t.etl.gz", &gzip(&trace()))]);
    let made = std::process::Command::new("mkfifo")
        .arg(here.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let feeder = here.path().join("pipe");
    let thread = std::thread::spawn(move || std::fs::write(feeder, gzip(&trace())));
    let said = etlkit(here.path(), &["info", "pipe"]);
    thread.join().unwrap().unwrap();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("records"));
}

/// Errors of packed input, each with a hint.
#[test]
fn unpack_errors_are_reported() {
    let packed = gzip(&trace());
    let two = archive(&[("b/kernel.etl", &trace()), ("a/clr\x1b[31m.etl", &trace())]);
    let mut changed = gzip(&trace());
    let at = changed.len() - 6;
    changed[at] ^= 0x40;
    let here = directory(&[
        ("two.zip", &two),
        ("none.zip", &archive(&[("a.txt", b"a"), ("b.txt", b"b")])),
        ("nothing.zip", &archive(&[])),
        (
            "text.zip",
            &archive(&[(
                "a.txt",
                b"this is only text, and no trace at all, however long",
            )]),
        ),
        ("cut.zip", &two[..two.len() - 10]),
        ("head.zip", b"PK\x03\x04 and more of it"),
        ("cut.gz", &packed[..packed.len() / 2]),
        ("changed.gz", &changed),
        ("twice.gz", &gzip(&packed)),
        ("empty.gz", &gzip(b"")),
        ("cut.zst", &zstandard(&trace())[..100]),
        (
            "evtx.gz",
            &gzip(b"ElfFile\0 and more of it, to be longer than a header of a buffer, please"),
        ),
        // A megabyte of zeros, three hundred times.
        ("bomb.gz", &gzip(&vec![0; 1 << 20]).repeat(300)),
        ("bomb.zst", &zstandard(&vec![0; 1 << 20]).repeat(300)),
        ("small.gz", &gzip(&vec![0; 2 << 20])),
        ("small.zip", &archive(&[("a.etl", &vec![0; 2 << 20])])),
    ]);
    let mut said = String::new();
    for args in [
        &["two.zip"][..],
        &["two.zip", "--member", "c.etl"],
        &["none.zip"],
        &["nothing.zip"],
        &["text.zip"],
        &["cut.zip"],
        &["head.zip"],
        &["cut.gz"],
        &["changed.gz"],
        &["twice.gz"],
        &["empty.gz"],
        &["cut.zst"],
        &["evtx.gz"],
        &["bomb.gz"],
        &["bomb.zst"],
        &["small.gz", "--max-unpacked", "1M"],
        &["small.zip", "--max-unpacked", "1M"],
    ] {
        let one = etlkit(here.path(), &[&["info"], args].concat());
        assert_eq!((one.code, one.out.as_str()), (2, ""), "{args:?}");
        said += &one.err;
        if args[0].starts_with("bomb") {
            continue; // Once is enough: each lays 256 MiB down first.
        }
        let input = std::fs::read(here.path().join(args[0])).unwrap();
        for reading in [&["info"][..], &["dump", "--file-order"]] {
            let piped = etlkit_piped(&input, &[reading, &["-"], &args[1..]].concat());
            assert_eq!(piped.code, 2, "{reading:?} {args:?}: {}", piped.err);
        }
        // Every command fails in the same way and leaves no file.
        for command in ["merge", "repair", "compress", "slice", "scrub"] {
            let one = etlkit(here.path(), &[&[command, "-o", "out.etl"], args].concat());
            assert_eq!(one.code, 2, "{command} {args:?}");
            assert!(
                !Path::new(&here.path().join("out.etl")).exists(),
                "{command} {args:?}"
            );
        }
    }
    insta::assert_snapshot!("unpacking", said);
}

/// A packed file of another format is named together with its packing.
#[test]
fn packed_other_formats_are_named() {
    let with = |head: &[u8]| [head, &[0x11, 0, 0xfe, 7].repeat(200)].concat();
    let text = b"this is only text, and no trace at all, however long it gets to be in the end";
    let (evtx, pcap) = (with(b"ElfFile\0"), with(b"\xd4\xc3\xb2\xa1"));
    let noise: Vec<u8> = (0..3000u32).map(|i| ((i * i * 7) >> 5) as u8 | 1).collect();
    let files = [
        ("text.gz", gzip(text)),
        ("text.zst", zstandard(text)),
        ("text.zip", archive(&[("notes/a.txt", text)])),
        ("evtx.gz", gzip(&evtx)),
        ("evtx.zst", zstandard(&evtx)),
        ("evtx.zip", archive(&[("app.evtx", &evtx)])),
        ("pcap.gz", gzip(&pcap)),
        ("pcap.zst", zstandard(&pcap)),
        (
            "pcap.zip",
            archive(&[("net\x1b[31m.etl", &pcap), ("readme.txt", text)]),
        ),
        ("noise.gz", gzip(&noise)),
        ("noise.zip", archive(&[("noise.etl", &noise)])),
        ("empty.zst", zstandard(b"")),
        ("empty.zip", archive(&[("empty.etl", b"")])),
        ("archive.gz", gzip(&archive(&[("a.etl", &trace())]))),
        // Without packing, only the format is named.
        ("pcap.etl", pcap.clone()),
    ];
    let here = directory(&[]);
    let mut transcript = String::new();
    for (name, bytes) in &files {
        std::fs::write(here.path().join(name), bytes).unwrap();
        let info = etlkit(here.path(), &["info", name]);
        assert_eq!((info.code, info.out.as_str()), (2, ""), "{name}");
        transcript += &info.err;
        for command in [
            &["info", "--no-mmap"][..],
            &["dump"],
            &["dump", "--strict"],
            &["verify"],
            &["diff", name],
            &["compress", "-o", "out.etl"],
            &["decompress", "-o", "out.etl"],
            &["merge", "-o", "out.etl"],
            &["repair", "-o", "out.etl"],
            &["slice", "-o", "out.etl"],
            &["scrub", "-o", "out.etl"],
        ] {
            let said = etlkit(here.path(), &[command, &[name]].concat());
            assert_eq!(
                (said.code, said.err),
                (2, info.err.clone()),
                "{command:?} {name}"
            );
        }
        for command in [
            &["info"][..],
            &["dump"],
            &["dump", "--file-order"],
            &["compress", "-o", "-"],
            &["decompress", "-o", "-"],
        ] {
            let said = etlkit_piped(bytes, &[command, &["-"]].concat());
            let err = said.err.replace("(standard input)", name);
            assert_eq!(
                (said.code, err),
                (2, info.err.clone()),
                "{command:?} < {name}"
            );
        }
    }
    insta::assert_snapshot!("packed_no_traces", transcript);
}

/// The first part has a magic number; the last one has the directory, at its end.
#[test]
fn last_part_of_a_split_archive_is_named() {
    let noise: Vec<u8> = (0..0x2000_u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8)
        .collect();
    let here = directory(&[("t.zip", &noise), ("t.z01", b"PK\x07\x08PK\x03\x04")]);
    for (name, what) in [
        ("t.zip", "the last part of one"),
        ("t.z01", "a ZIP archive in parts"),
    ] {
        let said = etlkit(here.path(), &["info", name]);
        assert!(said.code == 2 && said.err.contains(what), "{}", said.err);
        assert!(said.err.contains("hint: unpack it first"), "{}", said.err);
    }
}

#[test]
fn member_option_selects_file() {
    let other = &trace()[..0x2000];
    let here = directory(&[(
        "two.zip",
        &archive(&[("b/kernel.etl", &trace()), ("clr.etl", other)]),
    )]);
    for (member, records) in [("b/kernel.etl", 6), ("kernel.etl", 6), ("clr.etl", 3)] {
        let args = ["info", "--format", "json", "two.zip", "--member", member];
        let said = etlkit(here.path(), &args);
        let info: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(info["records"], records, "{member}: {}", said.err);
    }
}
