//! Decoders with a fault each: the strategies find every one within 256 cases, from every seed.

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::decode::Decoder;
use crate::tables::Registry;
use crate::testing::choices::agree;

/// The faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Text has characters of one byte only.
    TextIsLatin1,
    /// Text is read as Unicode: single surrogates are replaced.
    SurrogatesAreReplaced,
    /// Only one half of a pair of surrogates is kept.
    PairsAreCut,
    /// Text that is cut off at the end of the payload has no value.
    MissingZeroIsMissingText,
    /// Counted text ends at its first zero.
    ZeroEndsCountedText,
    /// Pointers always have 64 bits.
    PointersAreWide,
    /// Arrays have one element.
    ArraysAreSingle,
    /// Arrays of arrays and structures: the last member is lost.
    LastMemberIsLost,
    /// Numbers have no sign.
    SignIsLost,
    /// Numbers above 1000 are cut.
    NumbersAreCut,
    /// Numbers of 16 bits have their bytes swapped.
    BytesAreSwapped,
    /// Times have milliseconds only.
    TimesAreRounded,
    /// Every version is read as the first one.
    VersionIsIgnored,
}

impl Fault {
    /// What the faulty decoder makes of a correct value.
    fn spoil(self, value: &mut OwnedValue) {
        match value {
            OwnedValue::Utf16(units) => self.spoil_text(units),
            OwnedValue::Array(items) => {
                if self == Fault::ArraysAreSingle {
                    items.truncate(1);
                }
                items.iter_mut().for_each(|item| self.spoil(item));
            }
            OwnedValue::Struct(members) => {
                if self == Fault::LastMemberIsLost {
                    members.pop();
                }
                members.iter_mut().for_each(|member| self.spoil(member));
            }
            OwnedValue::Int(number) if self == Fault::SignIsLost && *number < 0 => {
                *value = OwnedValue::UInt(*number as u64);
            }
            OwnedValue::UInt(number) if self == Fault::NumbersAreCut => {
                *number = (*number).min(1000);
            }
            OwnedValue::UInt(number) if self == Fault::BytesAreSwapped && *number < 0x1_0000 => {
                *number = u64::from((*number as u16).swap_bytes());
            }
            OwnedValue::FileTime(time) if self == Fault::TimesAreRounded => {
                *time -= *time % 10_000;
            }
            _ => {}
        }
    }

    fn spoil_text(self, units: &mut Vec<u16>) {
        match self {
            Fault::TextIsLatin1 => units.iter_mut().for_each(|unit| *unit &= 0xff),
            Fault::SurrogatesAreReplaced => {
                *units = String::from_utf16_lossy(units).encode_utf16().collect();
            }
            Fault::PairsAreCut => {
                let mut previous = 0;
                units.retain(|unit| {
                    let ends_pair =
                        (0xd800..0xdc00).contains(&previous) && (0xdc00..0xe000).contains(unit);
                    previous = *unit;
                    !ends_pair
                });
            }
            Fault::ZeroEndsCountedText => {
                if let Some(length) = units.iter().position(|unit| *unit == 0) {
                    units.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// The values that the faulty decoder returns.
    fn decode(self, event: &GeneratedEvent, first: &Decoder, own: &Decoder) -> Vec<OwnedValue> {
        let decoder = match self {
            Fault::VersionIsIgnored => first,
            _ => own,
        };
        let pointers = match self {
            Fault::PointersAreWide => PointerSize::P8,
            _ => event.pointers,
        };
        let mut values = OwnedValue::collect(decoder.fields(&event.payload, pointers));
        if self == Fault::MissingZeroIsMissingText && event.is_unterminated {
            values.pop();
        }
        values.iter_mut().for_each(|value| self.spoil(value));
        values
    }
}

/// Whether 256 events from a seed show a difference.
fn is_found(
    events: &BoxedStrategy<GeneratedEvent>,
    seed: u8,
    decode: impl Fn(&GeneratedEvent) -> Vec<OwnedValue>,
) -> bool {
    let config = Config {
        cases: 256,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(events, |event| {
        prop_assert!(agree(&event.values, &decode(&event)));
        Ok(())
    });
    result.is_err()
}

/// Events of the schema with every kind of field that a fault is about.
fn all_kinds() -> TableEvent {
    let id = Identity::Modern { id: 1, version: 1 };
    let mut schema = EventSchema::new(etl_format::Guid::ZERO, id, SchemaSource::Table);
    let members = vec![
        Field::new("Address", InType::Pointer),
        Field::new("Name", InType::Utf16).with_length(Length::U16),
    ];
    schema.fields = vec![
        Field::new("Delta", InType::Int32),
        Field::new("Count", InType::UInt16),
        Field::new("Time", InType::FileTime),
        Field::structure("Items", members).with_count(Count::Field(crate::FieldRef::Here(1))),
        Field::new("Size", InType::UInt64),
        Field::new("Path", InType::Utf16).with_length(Length::NulTerminated),
    ];
    TableEvent::new(schema, "")
}

/// The same without its last field but one, as a first version.
fn first_version(event: &TableEvent) -> Decoder {
    let mut schema = event.schema.clone();
    schema.fields.remove(4);
    Decoder::new(schema.into())
}

#[test]
fn events_like_finds_every_planted_fault_from_20_seeds() {
    let event = all_kinds();
    let own = Decoder::new(event.schema.clone().into());
    let first = first_version(&event);
    let events = events_like(&event).boxed();
    for seed in 0..20 {
        let sound = |event: &GeneratedEvent| {
            OwnedValue::collect(own.fields(&event.payload, event.pointers))
        };
        assert!(
            !is_found(&events, seed, sound),
            "the sound decoder, seed {seed}"
        );
        for fault in [
            Fault::TextIsLatin1,
            Fault::SurrogatesAreReplaced,
            Fault::PairsAreCut,
            Fault::MissingZeroIsMissingText,
            Fault::ZeroEndsCountedText,
            Fault::PointersAreWide,
            Fault::ArraysAreSingle,
            Fault::LastMemberIsLost,
            Fault::SignIsLost,
            Fault::NumbersAreCut,
            Fault::TimesAreRounded,
            Fault::VersionIsIgnored,
        ] {
            let is_found = is_found(&events, seed, |event| fault.decode(event, &first, &own));
            assert!(is_found, "{fault:?}, seed {seed}");
        }
    }
}

/// A decoder of the runtime's events with faults in text and numbers.
#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn events_of_finds_faults_of_text_from_20_seeds() {
    let runtime = Registry::builtin().find("runtime").unwrap();
    let events = events_of(runtime).boxed();
    for seed in 0..20 {
        for fault in [
            Fault::TextIsLatin1,
            Fault::SurrogatesAreReplaced,
            Fault::PairsAreCut,
            Fault::MissingZeroIsMissingText,
            Fault::PointersAreWide,
            Fault::ArraysAreSingle,
            Fault::LastMemberIsLost,
            Fault::NumbersAreCut,
            Fault::BytesAreSwapped,
        ] {
            let is_found = is_found(&events, seed, |event| {
                let own = Decoder::new(event.event.schema.clone().into());
                fault.decode(event, &own, &own)
            });
            assert!(is_found, "{fault:?}, seed {seed}");
        }
    }
}

/// A bug above 1000 is shown with 1001, and what does not matter is empty.
#[test]
fn events_like_shrinks_to_bounds_and_prints_fields() {
    let event = all_kinds();
    let mut runner = TestRunner::deterministic();
    let result = runner.run(&events_like(&event), |event| {
        prop_assert!(event.values[4].as_u64() <= Some(1000));
        Ok(())
    });
    let text = result.unwrap_err().to_string();
    for line in [
        "with 64-bit pointers:",
        "  Delta = 0\n",
        "  Time = 119600064000000000 (0x1a8e79fe1d58000)\n",
        "  Items = []\n",
        "  Size = 1001 (0x3e9)\n",
        "  Path = \"\" (UTF-16:)\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
}
