//! The decoders against naive ones, on packed data, on damaged data and on anything.

mod naive;
mod pack;

use super::*;
use proptest::prelude::*;

/// Interpreted, a table of XPRESS_HUFF alone takes half a minute:
/// `decompress_matches_published_examples` reads one.
const FORMATS: &[CompressionFormat] = if cfg!(miri) {
    &[CompressionFormat::XPRESS, CompressionFormat::LZNT1]
} else {
    &[
        CompressionFormat::XPRESS,
        CompressionFormat::LZNT1,
        CompressionFormat::XPRESS_HUFF,
    ]
};

fn packed(format: CompressionFormat, data: &[u8]) -> Vec<u8> {
    match format {
        CompressionFormat::XPRESS => pack::xpress(data),
        CompressionFormat::LZNT1 => pack::lznt1(data),
        _ => pack::huffman(data),
    }
}

fn naively(format: CompressionFormat, input: &[u8], len: usize) -> Result<Vec<u8>, Vec<u8>> {
    let mut out = Vec::new();
    let whole = match format {
        CompressionFormat::XPRESS => naive::xpress(input, len, &mut out),
        CompressionFormat::LZNT1 => naive::lznt1(input, len, &mut out),
        _ => naive::huffman(input, len, &mut out),
    };
    out.truncate(len);
    if whole.is_some() && out.len() == len {
        Ok(out)
    } else {
        Err(out)
    }
}

/// Decodes into a buffer full of a pattern, and checks that nothing before the fault is off.
fn decoded(format: CompressionFormat, input: &[u8], len: usize) -> Result<Vec<u8>, Vec<u8>> {
    let mut out = vec![0xa5; len];
    match decompress(format, input, &mut out) {
        Ok(()) => Ok(out),
        Err(fault) => {
            assert!(
                fault.produced <= len && fault.consumed <= input.len(),
                "{fault:?}"
            );
            out.truncate(fault.produced);
            Err(out)
        }
    }
}

/// Bytes that look like what is in a trace: repeated headers, small numbers, runs, text, noise.
fn data() -> impl Strategy<Value = Vec<u8>> {
    // Interpreted, each byte takes a thousand times as long.
    let (pieces, shorter) = if cfg!(miri) { (3, 12usize) } else { (24, 1) };
    let piece = prop_oneof![
        (any::<u8>(), 1..400 / shorter).prop_map(|(b, n)| vec![b; n]),
        proptest::collection::vec(any::<u8>(), 0..40),
        (proptest::collection::vec(0u8..4, 1..24), 1..60 / shorter).prop_map(|(p, n)| p.repeat(n)),
        (any::<u16>(), 1..200 / shorter).prop_map(|(at, n)| {
            (0..n)
                .flat_map(|i| (u32::from(at) + i as u32).to_le_bytes())
                .collect()
        }),
    ];
    proptest::collection::vec(piece, 0..pieces).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn decompress_restores_packed_data(data in data()) {
        for &format in FORMATS {
            let packed = packed(format, &data);
            prop_assert_eq!(naively(format, &packed, data.len()), Ok(data.clone()), "naive {}", format);
            prop_assert_eq!(decoded(format, &packed, data.len()), Ok(data.clone()), "{}", format);
        }
    }

    #[test]
    fn decompress_fills_a_shorter_output(data in data(), part in 0.0f64..1.0) {
        let len = (data.len() as f64 * part) as usize;
        for &format in FORMATS {
            let packed = packed(format, &data);
            prop_assert_eq!(decoded(format, &packed, len), Ok(data[..len].to_vec()), "{}", format);
        }
    }

    #[test]
    fn decompress_cut_input_produces_a_prefix(data in data(), part in 0.0f64..1.0) {
        for &format in FORMATS {
            let packed = packed(format, &data);
            let cut = &packed[..(packed.len() as f64 * part) as usize];
            match decoded(format, cut, data.len()) {
                Ok(out) => prop_assert_eq!(out, data.clone()),
                Err(out) => prop_assert_eq!(&out[..], &data[..out.len()], "{}", format),
            }
        }
    }

    #[test]
    fn decompress_finds_damage_where_a_naive_decoder_does(
        data in data(), at in any::<prop::sample::Index>(), byte: u8, extra in 0usize..2000,
    ) {
        for &format in FORMATS {
            let mut packed = packed(format, &data);
            if packed.is_empty() { continue; }
            let at = at.index(packed.len());
            packed[at] = byte;
            let len = data.len() + extra;
            prop_assert_eq!(decoded(format, &packed, len), naively(format, &packed, len), "{}", format);
        }
    }

    #[test]
    fn decompress_agrees_with_naive_decoders_on_any_bytes(input in proptest::collection::vec(any::<u8>(), 0..600), len in 0usize..9000) {
        for &format in FORMATS {
            prop_assert_eq!(decoded(format, &input, len), naively(format, &input, len), "{}", format);
        }
        for unknown in [0u16, 1, 5, 0xffff] {
            let _ = decoded(CompressionFormat(unknown), &input, len);
        }
    }
}

const EFFORTS: [Effort; 3] = [Effort::Fast, Effort::Default, Effort::Best];

/// What each encoder writes is read by both decoders.
fn round_trip(data: &[u8]) {
    for effort in EFFORTS {
        if cfg!(miri) && effort == Effort::Fast {
            continue;
        }
        let mut compressor = Compressor::new(effort);
        for &format in FORMATS {
            let mut packed = b"before".to_vec();
            compressor.compress(format, data, &mut packed).unwrap();
            assert!(packed.starts_with(b"before"));
            let packed = &packed[6..];
            let back = decoded(format, packed, data.len());
            assert!(back.as_deref() == Ok(data), "{format} {effort:?}");
            let back = naively(format, packed, data.len());
            assert!(back.as_deref() == Ok(data), "naive {format} {effort:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn compress_round_trips(data in data()) {
        round_trip(&data);
    }
}

#[test]
fn compress_round_trips_runs_and_blocks() {
    for len in [
        0, 1, 2, 3, 25, 26, 287, 288, 4095, 4096, 4097, 65_535, 65_536, 65_560, 140_000,
    ] {
        if cfg!(miri) && !matches!(len, 0 | 3 | 26) {
            continue;
        }
        round_trip(&vec![7; len]);
        round_trip(
            &(0..len as u64)
                .map(|i| ((i * i) >> 7) as u8)
                .collect::<Vec<_>>(),
        );
    }
}

#[test]
fn xpress_fills_unused_flags_with_ones() {
    let packed = |data: &[u8]| {
        let mut out = Vec::new();
        compress(CompressionFormat::XPRESS, data, Effort::Default, &mut out).unwrap();
        out
    };
    let alphabet = b"abcdefghijklmnopqrstuvwxyz";
    assert_eq!(packed(alphabet), [&[0x3f, 0, 0, 0], &alphabet[..]].concat());
    let abc = [
        0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01,
    ];
    assert_eq!(packed(&b"abc".repeat(100)), abc);
    let full: Vec<u8> = (0..32).collect();
    assert_eq!(packed(&full), [&[0; 4], &full[..], &[0xff; 4]].concat());
}

#[test]
fn unknown_formats_are_refused() {
    let mut out = Vec::new();
    let format = CompressionFormat(9);
    assert_eq!(
        compress(format, b"abc", Effort::Fast, &mut out),
        Err(UnknownFormat(format))
    );
    assert!(out.is_empty());
    let fault = decompress(format, b"abc", &mut [0; 3]).unwrap_err();
    assert_eq!(
        fault,
        DecodeFault {
            format,
            produced: 0,
            consumed: 0
        }
    );
    assert!(
        !fault.is_known() && fault.to_string() == UnknownFormat(format).to_string(),
        "{fault}"
    );
    let fault = decompress(CompressionFormat::LZNT1, b"", &mut [0; 3]).unwrap_err();
    assert!(
        fault.is_known() && fault.to_string().starts_with("LZNT1 data is damaged"),
        "{fault}"
    );
}

/// A code that leaves bits without a meaning is none, even where those bits never come.
#[test]
fn incomplete_huffman_codes_are_refused() {
    let format = CompressionFormat::XPRESS_HUFF;
    let table = |lengths: &[(usize, u8)]| {
        let mut input = vec![0u8; 256];
        for &(symbol, length) in lengths {
            input[symbol / 2] |= length << (4 * (symbol % 2));
        }
        input.extend([0; 8]);
        input
    };
    let a = usize::from(b'a');
    for (lengths, sound) in [
        (&[][..], false),
        (&[(a, 1)], false),
        (&[(a, 1), (256, 2)], false),
        (&[(a, 1), (b'b'.into(), 1), (256, 15)], false),
        (&[(a, 1), (256, 1)], true),
        (&[(a, 1), (b'b'.into(), 2), (256, 2)], true),
    ] {
        if cfg!(miri) && lengths.len() > 1 {
            continue;
        }
        let input = table(lengths);
        assert_eq!(decoded(format, &input, 3).is_ok(), sound, "{lengths:?}");
        assert_eq!(naively(format, &input, 3).is_ok(), sound, "{lengths:?}");
    }
}

#[test]
fn decompress_handles_each_form_of_length() {
    // A literal, then one match of each length around the places where the form changes.
    for len in (3..40)
        .chain(260..300)
        .chain([4096, 65_530, 65_535, 65_550, 65_600, 200_000])
    {
        if cfg!(miri) && !matches!(len, 3 | 9 | 10 | 24 | 25 | 279 | 280) {
            continue;
        }
        let mut data = b"xyz".to_vec();
        data.extend(std::iter::repeat_n(b'q', len + 1));
        data.extend(b"end");
        for &format in FORMATS {
            let packed = packed(format, &data);
            assert_eq!(
                decoded(format, &packed, data.len()),
                Ok(data.clone()),
                "{format} {len}"
            );
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "far distances take many bytes, and these take hours")]
fn decompress_handles_each_distance() {
    let mut noise = 1u32;
    let mut data: Vec<u8> = (0..70_000)
        .map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        })
        .collect();
    for back in [
        1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 4095, 4096, 8191, 8192, 65_535,
    ] {
        for len in [3, 4, 15, 16, 17, 31, 32, 33, 64, 100] {
            for _ in 0..len {
                data.push(data[data.len() - back]);
            }
        }
    }
    for &format in FORMATS {
        let packed = packed(format, &data);
        assert_eq!(
            decoded(format, &packed, data.len()),
            Ok(data.clone()),
            "{format}"
        );
    }
}

/// The examples that the publication works through.
#[test]
fn decompress_matches_published_examples() {
    let alphabet = b"abcdefghijklmnopqrstuvwxyz";
    let mut packed = vec![0x3f, 0, 0, 0];
    packed.extend(alphabet);
    assert_eq!(
        decoded(CompressionFormat::XPRESS, &packed, 26),
        Ok(alphabet.to_vec())
    );

    let abc = b"abc".repeat(100);
    let packed = [
        0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01,
    ];
    assert_eq!(
        decoded(CompressionFormat::XPRESS, &packed, 300),
        Ok(abc.clone())
    );

    let mut table = [0u8; 256];
    // "abc" repeated: three literals and one match of class 1, and the end, in codes of 3 bits.
    (table[0x30], table[0x31], table[0x80], table[0x8f]) = (0x30, 0x23, 0x02, 0x20);
    let mut packed = table.to_vec();
    packed.extend([0xa8, 0xdc, 0x00, 0x00, 0xff, 0x26, 0x01]);
    assert_eq!(
        decoded(CompressionFormat::XPRESS_HUFF, &packed, 300),
        Ok(abc)
    );

    let notes = b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D \
                  E F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
    let packed = [
        0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47,
        0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20,
        0x05, 0x24, 0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09,
        0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00,
    ];
    assert_eq!(
        decoded(CompressionFormat::LZNT1, &packed, notes.len()),
        Ok(notes.to_vec())
    );
}

#[test]
fn lznt1_chunk_may_end_with_flags_without_items() {
    // Seven literals, a match that fills the chunk, and the flags of the next eight items.
    let token = 4096 - 7 - 3u16;
    let mut packed = vec![0x0a, 0xb0, 0x80, 1, 1, 1, 1, 1, 1, 1];
    packed.extend(token.to_le_bytes());
    packed.extend([0, 0x00, 0x30, 2]);
    let whole = [vec![1; 4096], vec![2]].concat();
    assert_eq!(
        naively(CompressionFormat::LZNT1, &packed, 4097),
        Ok(whole.clone())
    );
    assert_eq!(decoded(CompressionFormat::LZNT1, &packed, 4097), Ok(whole));
}
