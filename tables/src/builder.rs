//! Builds record batches row by row.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array,
    Int64Array, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};
use etl_format::FileTime;
use etl_format::constants::FILETIME_UNIX_EPOCH;
use foldhash::HashMap;

use crate::cell::{Cell, percent};
use crate::column::Kind;
use crate::schema::{Slot, schema_of};

/// Bytes of texts after which a dictionary begins again with the next batch.
const MAX_WORDS: usize = 16 << 20;

/// Texts, each once, and the number of the text of each row.
#[derive(Debug, Default)]
struct Words {
    numbers: HashMap<Box<str>, i32>,
    bytes: Vec<u8>,
    ends: Vec<i32>,
    /// The text of the last row.
    last_text: String,
    /// The number of that text.
    last_number: i32,
    rows: Vec<i32>,
    /// The texts of the last batch.
    values: Option<Arc<StringArray>>,
}

impl Words {
    #[inline]
    fn add(&mut self, text: &str) {
        if self.last_text != text || self.ends.is_empty() {
            self.last_number = match self.numbers.get(text) {
                Some(&number) => number,
                None => self.learn(text),
            };
            self.last_text.clear();
            self.last_text.push_str(text);
        }
        self.rows.push(self.last_number);
    }

    #[cold]
    fn learn(&mut self, text: &str) -> i32 {
        let number = i32::try_from(self.ends.len()).unwrap_or(i32::MAX);
        self.bytes.extend(text.as_bytes());
        self.ends
            .push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
        self.numbers.insert(text.into(), number);
        number
    }

    fn take(&mut self, nulls: NullBufferBuilder) -> Result<ArrayRef, ArrowError> {
        let mut nulls = nulls;
        let values = match &self.values {
            Some(values) if values.len() == self.ends.len() => Arc::clone(values),
            _ => Arc::new(texts(&self.ends, self.bytes.clone(), None)?),
        };
        self.values = Some(Arc::clone(&values));
        let keys = Int32Array::new(
            ScalarBuffer::from(std::mem::take(&mut self.rows)),
            nulls.finish(),
        );
        if self.bytes.len() > MAX_WORDS {
            *self = Words::default();
        }
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
            keys, values,
        )?))
    }
}

/// Offsets from the ends of values.
fn offsets(ends: &[i32]) -> OffsetBuffer<i32> {
    let all: Vec<i32> = std::iter::once(0).chain(ends.iter().copied()).collect();
    OffsetBuffer::new(ScalarBuffer::from(all))
}

fn texts(
    ends: &[i32],
    bytes: Vec<u8>,
    nulls: Option<arrow_buffer::NullBuffer>,
) -> Result<StringArray, ArrowError> {
    StringArray::try_new(offsets(ends), Buffer::from_vec(bytes), nulls)
}

/// The values of a column.
#[derive(Debug)]
enum Values {
    Bool(BooleanBufferBuilder),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Time(Vec<i64>),
    Text(Vec<i32>, Vec<u8>),
    Word(Box<Words>),
    Bytes(Vec<i32>, Vec<u8>),
}

#[derive(Debug)]
struct Filling {
    values: Values,
    nulls: NullBufferBuilder,
}

impl Filling {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Bool => Values::Bool(BooleanBufferBuilder::new(0)),
            Kind::Int32 => Values::Int32(Vec::new()),
            Kind::Int64 => Values::Int64(Vec::new()),
            Kind::Float64 => Values::Float64(Vec::new()),
            Kind::Time => Values::Time(Vec::new()),
            Kind::Text => Values::Text(Vec::new(), Vec::new()),
            Kind::Word => Values::Word(Box::default()),
            Kind::Bytes => Values::Bytes(Vec::new(), Vec::new()),
        };
        Filling {
            values,
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Adds a value, or null if it does not have the type of the column. Returns the number of
    /// bytes of a text.
    #[inline]
    fn add(&mut self, cell: Cell<'_>) -> usize {
        let mut is_valid = true;
        let mut bytes = 0;
        match (&mut self.values, plain(cell)) {
            (Values::Bool(to), Cell::Bool(value)) => to.append(value),
            (Values::Int32(to), Cell::Int(value)) => {
                to.push(i32::try_from(value).unwrap_or(value as i32));
            }
            (Values::Int64(to) | Values::Time(to), Cell::Int(value)) => to.push(value),
            (Values::Time(to), Cell::Time(time)) => to.push(unix_micros(time)),
            (Values::Float64(to), Cell::Float(value)) => to.push(value),
            (Values::Float64(to), Cell::Share(share)) => to.push(percent(share)),
            (Values::Word(to), Cell::Text(text)) => to.add(text),
            (Values::Text(ends, to), Cell::Text(text)) => {
                to.extend(text.as_bytes());
                ends.push(i32::try_from(to.len()).unwrap_or(i32::MAX));
                bytes = text.len();
            }
            (Values::Text(ends, to) | Values::Bytes(ends, to), Cell::Bytes(value)) => {
                to.extend(value);
                ends.push(i32::try_from(to.len()).unwrap_or(i32::MAX));
                bytes = value.len();
            }
            (values, _) => {
                is_valid = false;
                match values {
                    Values::Bool(to) => to.append(false),
                    Values::Int32(to) => to.push(0),
                    Values::Int64(to) | Values::Time(to) => to.push(0),
                    Values::Float64(to) => to.push(0.0),
                    Values::Word(to) => to.rows.push(0),
                    Values::Text(ends, to) | Values::Bytes(ends, to) => {
                        ends.push(i32::try_from(to.len()).unwrap_or(i32::MAX));
                    }
                }
            }
        }
        self.nulls.append(is_valid);
        bytes
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let mut nulls = std::mem::replace(&mut self.nulls, NullBufferBuilder::new(0));
        Ok(match &mut self.values {
            Values::Bool(values) => Arc::new(BooleanArray::new(values.finish(), nulls.finish())),
            Values::Int32(values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                Arc::new(Int32Array::try_new(values, nulls.finish())?)
            }
            Values::Int64(values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                Arc::new(Int64Array::try_new(values, nulls.finish())?)
            }
            Values::Float64(values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                Arc::new(Float64Array::try_new(values, nulls.finish())?)
            }
            Values::Time(values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                let array = TimestampMicrosecondArray::try_new(values, nulls.finish())?;
                Arc::new(array.with_timezone("UTC"))
            }
            Values::Text(ends, bytes) => {
                let ends = std::mem::take(ends);
                Arc::new(texts(&ends, std::mem::take(bytes), nulls.finish())?)
            }
            Values::Bytes(ends, bytes) => {
                let ends = std::mem::take(ends);
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                Arc::new(BinaryArray::try_new(offsets(&ends), bytes, nulls.finish())?)
            }
            Values::Word(words) => words.take(nulls)?,
        })
    }
}

/// Microseconds since 1970: the times of Arrow.
fn unix_micros(time: FileTime) -> i64 {
    const UNITS_PER_MICROSECOND: i64 = 10;
    time.get()
        .saturating_sub(FILETIME_UNIX_EPOCH)
        .div_euclid(UNITS_PER_MICROSECOND)
}

/// A value without the text for people.
#[inline]
fn plain<'a>(cell: Cell<'a>) -> Cell<'a> {
    match cell {
        Cell::Label(label) => Cell::text(label.value()),
        cell => cell,
    }
}

/// Bounds of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Rows.
    pub rows: usize,
    /// Bytes of texts and bytes.
    pub bytes: usize,
}

/// Rows that become batches.
#[derive(Debug)]
pub(crate) struct Builder {
    schema: SchemaRef,
    /// By the index in the table; `None` for a column that is not requested.
    columns: Vec<Option<Filling>>,
    /// The index in the table of each column of the batch.
    order: Vec<usize>,
    bounds: Bounds,
    rows: usize,
    bytes: usize,
}

impl Builder {
    /// A builder for these columns of a table, in the order of `requested`.
    pub fn new(slots: &[Slot], requested: &[usize], bounds: Bounds) -> Self {
        let mut columns: Vec<Option<Filling>> = slots.iter().map(|_| None).collect();
        for &index in requested {
            if let Some(column) = columns.get_mut(index)
                && let Some(slot) = slots.get(index)
            {
                *column = Some(Filling::new(slot.kind));
            }
        }
        let schema = schema_of(requested.iter().filter_map(|&index| slots.get(index)));
        Builder {
            schema,
            columns,
            order: requested.to_vec(),
            bounds,
            rows: 0,
            bytes: 0,
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the column with this index is requested.
    #[inline]
    pub fn wants(&self, index: usize) -> bool {
        self.columns.get(index).is_some_and(Option::is_some)
    }

    /// Sets the value of a column in the current row. Each requested column must get one.
    #[inline]
    pub fn set(&mut self, index: usize, cell: Cell<'_>) {
        if let Some(Some(column)) = self.columns.get_mut(index) {
            self.bytes += column.add(cell);
        }
    }

    /// Ends the current row; returns whether the batch is full.
    #[inline]
    pub fn end_row(&mut self) -> bool {
        self.rows += 1;
        self.rows >= self.bounds.rows || self.bytes >= self.bounds.bytes
    }

    /// Rows of the current batch.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns the batch of the rows so far, and begins the next batch.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut arrays = Vec::with_capacity(self.order.len());
        for &index in &self.order {
            if let Some(Some(column)) = self.columns.get_mut(index) {
                arrays.push(column.take()?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        self.bytes = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}
