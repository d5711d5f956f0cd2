//! The records that a step changes.

use super::image::{Image, Name, Record};
use super::number::{get, parse, ticks};

/// Names of providers and classes in the table, and their GUIDs as they stand in a file.
const PROVIDERS: &[(&str, [u8; 16])] = &[
    (
        "runtime",
        guid(0xe13c_0d23, 0xccbc, 0x4e12, 0x931b_d9cc_2eee_27e4),
    ),
    (
        "rundown",
        guid(0xa669_021c, 0xc450, 0x4609, 0xa035_5af5_9af4_df18),
    ),
    (
        "perfview",
        guid(0xa8a7_1ac1, 0x040f, 0x54a2, 0x07ca_00a8_9b5a_b761),
    ),
    (
        "tpl",
        guid(0x2e5d_ba47, 0xa3d2, 0x4d16, 0x8ee0_6671_ffdc_d7b5),
    ),
    (
        "imageid",
        guid(0xb3e6_75d7, 0x2554, 0x4f18, 0x830b_2762_7325_60de),
    ),
];

const fn guid(first: u32, second: u16, third: u16, last: u64) -> [u8; 16] {
    let (a, b, c) = (
        first.to_le_bytes(),
        second.to_le_bytes(),
        third.to_le_bytes(),
    );
    let d = last.to_be_bytes();
    [
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ]
}

/// The GUID of a provider that the table names.
pub fn provider(name: &str) -> [u8; 16] {
    let known = PROVIDERS.iter().find(|(known, _)| *known == name);
    known
        .unwrap_or_else(|| panic!("{name} is no provider of the table"))
        .1
}

/// `PROVIDER:EVENTS` and filters: the records that a step changes.
#[derive(Debug)]
pub struct Which<'t> {
    provider: &'t str,
    /// Ids, opcodes or hooks; empty for all.
    events: Vec<u64>,
    filters: Vec<Filter<'t>>,
}

/// `NAME=VALUE`, or `NAME&VALUE`.
#[derive(Debug)]
struct Filter<'t> {
    name: &'t str,
    value: &'t str,
    bits: bool,
}

impl<'t> Filter<'t> {
    fn new(word: &'t str) -> Option<Self> {
        let at = word.find(['=', '&']).filter(|&at| at > 0)?;
        let bits = word.as_bytes()[at] == b'&';
        Some(Filter {
            name: &word[..at],
            value: &word[at + 1..],
            bits,
        })
    }
}

/// The width of a field and its place: `u32@8`, or `u16@-2`.
pub fn field(name: &str) -> Option<(usize, isize)> {
    let (kind, place) = name.split_once('@')?;
    let bits: usize = kind.strip_prefix('u')?.parse().ok()?;
    Some((bits / 8, place.parse().ok()?))
}

impl<'t> Which<'t> {
    /// Takes the words of a selection from the beginning of a step's words.
    pub fn take(words: &mut &[&'t str]) -> Self {
        let (provider, events) = words[0].split_once(':').expect("PROVIDER:EVENTS");
        let events = match events {
            "*" => Vec::new(),
            events => events.split(',').map(parse).collect(),
        };
        let filters: Vec<_> = words[1..]
            .iter()
            .map_while(|word| Filter::new(word))
            .collect();
        *words = &words[1 + filters.len()..];
        Which {
            provider,
            events,
            filters,
        }
    }

    /// Indexes of the records, in time order.
    #[must_use]
    pub fn of(&self, image: &Image) -> Vec<usize> {
        let all = image.by_time.iter().copied();
        let mut found: Vec<usize> = all.filter(|&i| self.names(&image.records[i])).collect();
        for filter in &self.filters {
            filter.apply(&mut found, image);
        }
        found
    }

    fn names(&self, record: &Record) -> bool {
        let (owner, event) = match record.name {
            Name::Event(owner, id) => (Some(owner), u64::from(id)),
            Name::Classic(owner, opcode) => (Some(owner), u64::from(opcode)),
            Name::Kernel(hook) => (None, u64::from(hook)),
        };
        let is_owner = match (self.provider, owner) {
            ("kernel", owner) => owner.is_none(),
            (name, Some(owner)) => owner == provider(name),
            (_, None) => false,
        };
        is_owner && (self.events.is_empty() || self.events.contains(&event))
    }
}

impl Filter<'_> {
    fn apply(&self, found: &mut Vec<usize>, image: &Image) {
        let number = || parse(self.value) as usize;
        let time = || image.start + ticks(self.value);
        let record = |index: &usize| &image.records[*index];
        match self.name {
            "pid" => found.retain(|i| record(i).process == Some(number() as u32)),
            "cpu" => {
                found.retain(|i| usize::from(image.buffers[record(i).buffer].processor) == number())
            }
            "from" => found.retain(|i| record(i).time >= time()),
            "until" => found.retain(|i| record(i).time < time()),
            "nth" => *found = found.get(number()).copied().into_iter().collect(),
            "first" => found.truncate(number()),
            "after" => *found = found.split_off(number().min(found.len())),
            "every" => *found = found.iter().copied().step_by(number()).collect(),
            name => {
                let (width, at) = field(name).unwrap_or_else(|| panic!("no filter: {name}"));
                let wanted = parse(self.value);
                found.retain(|i| {
                    let at = record(i).payload.checked_add_signed(at).expect("a place");
                    let bytes = image.bytes(record(i));
                    if at + width > bytes.len() {
                        // Another version of the event, without this field.
                        return false;
                    }
                    let value = get(bytes, (at, width));
                    if self.bits {
                        value & wanted != 0
                    } else {
                        value == wanted
                    }
                });
            }
        }
    }
}
