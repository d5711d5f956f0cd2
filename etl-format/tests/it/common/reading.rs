//! Reading a trace to its end, in each way there is.

use std::fmt;
use std::io::Cursor;

use etl_format::read::{
    Damage, FileSource, Limits, Mode, Options, Order, OrderCheck, OrderReport, PipeSource, Record,
    Records, Source, Spooled, Trace,
};
use etl_format::{Error, constants::RecordKind};

/// All that a test compares of a record.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    pub buffer: u64,
    pub at: u32,
    pub cpu: u16,
    pub timestamp: i64,
    pub own: bool,
    pub kind: RecordKind,
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen {
            buffer,
            at,
            cpu,
            timestamp,
            own,
            kind,
            bytes,
        } = self;
        let len = bytes.len();
        write!(
            f,
            "{kind} at {buffer:#x}+{at:#x} ({len} bytes) cpu {cpu} timestamp {timestamp} own {own}"
        )
    }
}

impl Seen {
    pub fn of(r: &Record<'_>) -> Self {
        let place = r.location();
        assert_eq!(place.processor, r.processor());
        Seen {
            buffer: place.buffer_offset,
            at: place.in_buffer,
            cpu: place.processor,
            timestamp: r.timestamp().get(),
            own: r.has_own_timestamp(),
            kind: r.kind(),
            bytes: r.bytes().to_vec(),
        }
    }
}

/// Damage without its error: range, code, records before and after.
pub type Spot = (core::ops::Range<u64>, &'static str, u64, u64);

pub fn spots(damage: &[Damage]) -> Vec<Spot> {
    damage
        .iter()
        .map(|d| {
            (
                d.range.clone(),
                d.error.code(),
                d.records_before,
                d.records_after,
            )
        })
        .collect()
}

/// What came of reading a trace.
#[derive(Debug)]
pub struct Outcome {
    pub records: Vec<Seen>,
    pub damage: Vec<Spot>,
    pub notes: Vec<String>,
    pub order: OrderReport,
    pub end: Result<(), Error>,
}

impl Outcome {
    fn failed(error: Error) -> Self {
        Outcome {
            records: Vec::new(),
            damage: Vec::new(),
            notes: Vec::new(),
            order: OrderReport::default(),
            end: Err(error),
        }
    }

    pub fn timestamps(&self) -> Vec<i64> {
        self.records.iter().map(|r| r.timestamp).collect()
    }

    /// Everything but the error, which cannot be compared.
    pub fn same_as(&self, other: &Self) -> bool {
        let text = |o: &Self| o.end.as_ref().map_err(Error::to_string).err();
        (&self.records, &self.damage, &self.notes, text(self))
            == (&other.records, &other.damage, &other.notes, text(other))
    }
}

pub fn file_order(source: impl Source, options: &Options) -> Outcome {
    let mut reader = match Records::stream(source, options) {
        Ok(reader) => reader,
        Err(error) => return Outcome::failed(error),
    };
    let mut records = Vec::new();
    let end = reader.for_each(|r| {
        records.push(Seen::of(&r));
        Ok(())
    });
    assert_eq!(reader.count(), records.len() as u64);
    Outcome {
        records,
        damage: spots(reader.damage()),
        notes: reader.notes().iter().map(|n| n.code().to_owned()).collect(),
        order: OrderReport::default(),
        end,
    }
}

pub fn time_order(source: impl Source, options: &Options) -> Outcome {
    time_order_on(source, options, 1)
}

/// As [`time_order`], with buffers made ready by other threads.
pub fn time_order_on(source: impl Source, options: &Options, threads: usize) -> Outcome {
    timed(
        source,
        &Options {
            threads,
            ..*options
        },
        |reader| {
            let mut records = Vec::new();
            let end = reader.for_each(|r| {
                records.push(Seen::of(&r));
                Ok(())
            });
            (end, records)
        },
    )
}

/// As [`time_order_on`], with records processed in batches on a second thread.
pub fn time_order_piped(source: impl Source, options: &Options, threads: usize) -> Outcome {
    timed(
        source,
        &Options {
            threads,
            ..*options
        },
        |reader| {
            let mut records = Vec::new();
            let end = reader.pipeline(
                |record, batch: &mut Vec<Seen>| {
                    batch.push(Seen::of(record));
                    batch.len() == 3
                },
                |batch| records.append(batch),
            );
            (end, records)
        },
    )
}

/// What comes of reading a trace in time order by `read`.
fn timed<S: Source>(
    mut source: S,
    options: &Options,
    read: impl FnOnce(&mut Records<&mut S>) -> (Result<(), Error>, Vec<Seen>),
) -> Outcome {
    let trace = match Trace::open(&mut source, options) {
        Ok(trace) => trace,
        Err(error) => return Outcome::failed(error),
    };
    let notes = trace.notes().iter().map(|n| n.code().to_owned()).collect();
    let mut reader = match trace.into_records(Order::Time) {
        Ok(reader) => reader,
        Err(error) => return Outcome::failed(error),
    };
    let (end, records) = read(&mut reader);
    assert_eq!(reader.count(), records.len() as u64);
    Outcome {
        records,
        damage: spots(reader.damage()),
        notes,
        order: reader.report(),
        end,
    }
}

/// As [`file_order`], by the reader that other threads can help; `None` where finding the buffers
/// fails.
pub fn in_file_order_on(source: impl Source, options: &Options, threads: usize) -> Option<Outcome> {
    let mut trace = Trace::open(source, options).ok()?;
    let mut reader = trace.records(Order::File).unwrap().with_threads(threads);
    let mut records = Vec::new();
    let end = reader.for_each(|r| {
        records.push(Seen::of(&r));
        Ok(())
    });
    let order = OrderReport::default();
    Some(Outcome {
        records,
        damage: spots(reader.damage()),
        notes: Vec::new(),
        order,
        end,
    })
}

pub fn strict() -> Options {
    Options {
        mode: Mode::Strict,
        order_check: OrderCheck::Scan,
        ..Options::default()
    }
}

pub fn ahead(options: Options) -> Options {
    Options {
        order_check: OrderCheck::Lookahead,
        ..options
    }
}

pub fn heads(options: Options) -> Options {
    Options {
        order_check: OrderCheck::FirstRecord,
        ..options
    }
}

pub fn file(bytes: &[u8]) -> FileSource<Cursor<&[u8]>> {
    FileSource::new(Cursor::new(bytes)).unwrap()
}

pub fn pipe(bytes: &[u8]) -> PipeSource<&[u8]> {
    PipeSource::new(bytes)
}

/// A spooled pipe, with up to `limit` bytes in memory.
pub fn spooled(bytes: &[u8], limit: usize) -> Spooled<Cursor<Vec<u8>>> {
    Spooled::new(bytes, limit, || Ok(Cursor::new(Vec::new()))).unwrap()
}

/// The records of a sound trace in file order; fails on any fault.
pub fn sound(bytes: &[u8]) -> Vec<Seen> {
    let outcome = file_order(bytes, &strict());
    outcome.end.expect("a sound trace");
    outcome.records
}

/// Salvages a trace in file order and compares all other ways of reading: every source returns the
/// same records and damage; time order has the same records and the same map; strict mode returns a
/// prefix, and an error if there is damage.
pub fn salvage(bytes: &[u8]) -> Outcome {
    salvage_within(bytes, Limits::default())
}

/// As [`salvage`], every way of reading with the same limits.
pub fn salvage_within(bytes: &[u8], limits: Limits) -> Outcome {
    let options = Options {
        limits,
        ..Options::salvage()
    };
    let outcome = file_order(bytes, &options);
    // Miri takes a second for each way of reading, and two from a file.
    let few = cfg!(miri);
    if !few {
        for other in [
            file_order(file(bytes), &options),
            file_order(pipe(bytes), &options),
        ] {
            assert!(other.same_as(&outcome), "{other:#?}\nis not\n{outcome:#?}");
        }
    }
    let sorted = |records: &[Seen]| {
        let mut places: Vec<_> = records
            .iter()
            .map(|r| (r.buffer, r.at, r.timestamp))
            .collect();
        places.sort_unstable();
        places
    };
    let orders = [
        ahead(options),
        Options {
            order_check: OrderCheck::Scan,
            ..options
        },
        heads(options),
    ];
    for options in orders.into_iter().take(if few { 1 } else { 3 }) {
        let timed = time_order(bytes, &options);
        assert_eq!(timed.end.is_ok(), outcome.end.is_ok());
        assert_eq!(sorted(&timed.records), sorted(&outcome.records));
        assert_eq!(timed.damage, outcome.damage);
        if few {
            continue;
        }
        for source in [
            time_order(file(bytes), &options),
            time_order(spooled(bytes, 9), &options),
        ] {
            assert!(source.same_as(&timed), "{source:#?}\nis not\n{timed:#?}");
        }
    }
    let prefix = file_order(bytes, &Options { limits, ..strict() });
    for (i, record) in prefix.records.iter().enumerate() {
        let salvaged = outcome.records.get(i);
        assert_eq!(Some(record), salvaged, "record {i}, {:x?}", outcome.damage);
    }
    assert_eq!(
        prefix.end.is_err(),
        !outcome.damage.is_empty() || outcome.end.is_err()
    );
    assert_eq!(prefix.damage, []);
    if prefix.end.is_ok() {
        assert_eq!(
            (&prefix.records, &prefix.notes),
            (&outcome.records, &outcome.notes)
        );
    }
    outcome
}
