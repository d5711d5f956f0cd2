//! Builds record batches row by row.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};
use foldhash::HashMap;

use crate::cell::{Cell, percent};
use crate::column::Kind;
use crate::schema::{Slot, schema_of};
use crate::time::unix_micros;

/// Bytes of texts after which a dictionary begins again with the next batch.
const MAX_WORDS: usize = 16 << 20;

/// Texts, each once, and the number of the text of each row.
#[derive(Debug, Default)]
struct Words {
    numbers: HashMap<Box<str>, i32>,
    bytes: Vec<u8>,
    ends: Vec<i32>,
    /// The text of the last row and its number.
    last: (String, i32),
    rows: Vec<i32>,
    /// The texts of the last batch, which had so many.
    values: Option<(usize, Arc<StringArray>)>,
}

impl Words {
    #[inline]
    fn add(&mut self, text: &str) {
        if self.last.0 != text || self.ends.is_empty() {
            let number = match self.numbers.get(text) {
                Some(&number) => number,
                None => self.learn(text),
            };
            self.last.0.clear();
            self.last.0.push_str(text);
            self.last.1 = number;
        }
        self.rows.push(self.last.1);
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
            Some((count, values)) if *count == self.ends.len() => Arc::clone(values),
            _ => {
                let values = texts(&self.ends, self.bytes.clone(), None)?;
                let values = Arc::new(values);
                self.values = Some((self.ends.len(), Arc::clone(&values)));
                values
            }
        };
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

    /// Adds a value; one of another type than the column's is none. Returns its bytes.
    #[inline]
    fn add(&mut self, cell: Cell<'_>) -> usize {
        let mut some = true;
        let mut bytes = 0;
        match (&mut self.values, plain(cell)) {
            (Values::Bool(to), Cell::Bool(value)) => to.append(value),
            (Values::Int32(to), Cell::Int(value)) => {
                to.push(i32::try_from(value).unwrap_or(value as i32));
            }
            (Values::Int64(to) | Values::Time(to), Cell::Int(value)) => to.push(value),
            (Values::Time(to), Cell::Time(filetime)) => to.push(unix_micros(filetime)),
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
                some = false;
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
        self.nulls.append(some);
        bytes
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let mut nulls = std::mem::replace(&mut self.nulls, NullBufferBuilder::new(0));
        let take = std::mem::take::<Vec<i64>>;
        Ok(match &mut self.values {
            Values::Bool(of) => Arc::new(BooleanArray::new(of.finish(), nulls.finish())),
            Values::Int32(of) => {
                let values = ScalarBuffer::from(std::mem::take(of));
                Arc::new(Int32Array::try_new(values, nulls.finish())?)
            }
            Values::Int64(of) => Arc::new(Int64Array::try_new(
                ScalarBuffer::from(take(of)),
                nulls.finish(),
            )?),
            Values::Float64(of) => {
                let values = ScalarBuffer::from(std::mem::take(of));
                Arc::new(Float64Array::try_new(values, nulls.finish())?)
            }
            Values::Time(of) => {
                let values = ScalarBuffer::from(take(of));
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
            Values::Word(of) => of.take(nulls)?,
        })
    }
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
    /// By place in the table; `None` for a column that is not wanted.
    columns: Vec<Option<Filling>>,
    /// The place in the table of each column of the batch.
    order: Vec<usize>,
    bounds: Bounds,
    rows: usize,
    bytes: usize,
}

impl Builder {
    /// A builder for these columns of a table, in the order of `wanted`.
    pub fn new(slots: &[Slot], wanted: &[usize], bounds: Bounds) -> Self {
        let mut columns: Vec<Option<Filling>> = slots.iter().map(|_| None).collect();
        for &at in wanted {
            if let (Some(column), Some(slot)) = (columns.get_mut(at), slots.get(at)) {
                *column = Some(Filling::new(slot.kind));
            }
        }
        let schema = schema_of(wanted.iter().filter_map(|&at| slots.get(at)));
        Builder {
            schema,
            columns,
            order: wanted.to_vec(),
            bounds,
            rows: 0,
            bytes: 0,
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the column is wanted at a place.
    #[inline]
    pub fn wants(&self, at: usize) -> bool {
        self.columns.get(at).is_some_and(Option::is_some)
    }

    /// Sets the value of the current row at a place. Each wanted column gets one.
    #[inline]
    pub fn set(&mut self, at: usize, cell: Cell<'_>) {
        if let Some(Some(column)) = self.columns.get_mut(at) {
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

    /// The batch of the rows so far, and begins the next one.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut arrays = Vec::with_capacity(self.order.len());
        for &at in &self.order {
            if let Some(Some(column)) = self.columns.get_mut(at) {
                arrays.push(column.take()?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}
