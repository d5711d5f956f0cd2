//! What schemas cost: finding them, and reading fields by them.

use std::hint::black_box;

use etl_format::constants::PointerSize;
use etl_format::read::{FileOrder, Options};
use etl_schema::decode::{Decoder, Value};
use etl_schema::store::SchemaStore;

/// The payloads of a trace whose schemas are in the tables: the CLR's and the kernel's.
pub struct Payloads<'s> {
    events: Vec<(&'s Decoder, PointerSize, Vec<u8>)>,
}

impl<'s> Payloads<'s> {
    /// Gathers them.
    pub fn of(bytes: &[u8], store: &'s SchemaStore) -> Self {
        let mut events = Vec::new();
        let mut records = FileOrder::open(bytes, &Options::default()).expect("it is a trace");
        while let Some(record) = records.next_record().expect("it is whole") {
            if let (Some(decoder), Some(pointers)) = (store.decoder(&record), record.pointer_size())
            {
                events.push((decoder, pointers, record.payload().to_vec()));
            }
        }
        Payloads { events }
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.events.len() as u64
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.events.iter().map(|(_, _, payload)| payload.len() as u64).sum()
    }

    /// Reads every field of every event, and every element of arrays.
    pub fn decode(&self) -> u64 {
        let mut fields = 0;
        for (decoder, pointers, payload) in &self.events {
            fields += read(decoder, *pointers, payload);
        }
        fields
    }
}

fn read(decoder: &Decoder, pointers: PointerSize, payload: &[u8]) -> u64 {
    let mut fields = 0;
    for (_, value) in decoder.fields(payload, pointers) {
        fields += 1;
        match value {
            Value::Array(items) => items.iter().for_each(|value| {
                black_box(value.as_u64());
            }),
            other => {
                black_box(other);
            }
        }
    }
    fields
}

/// Looks up the schema of every record of the file.
pub fn look_up(bytes: &[u8], store: &SchemaStore) -> u64 {
    let mut found = 0;
    let mut records = FileOrder::open(bytes, &Options::default()).expect("it is a trace");
    while let Some(record) = records.next_record().expect("it is whole") {
        found += u64::from(black_box(store.decoder(&record)).is_some());
    }
    found
}

/// Looks up the schema of every record of the file and reads all fields.
pub fn look_up_and_decode(bytes: &[u8], store: &SchemaStore) -> u64 {
    let mut fields = 0;
    let mut records = FileOrder::open(bytes, &Options::default()).expect("it is a trace");
    while let Some(record) = records.next_record().expect("it is whole") {
        if let (Some(decoder), Some(pointers)) = (store.decoder(&record), record.pointer_size()) {
            fields += read(decoder, pointers, record.payload());
        }
    }
    fields
}
