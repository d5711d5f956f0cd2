//! Fields of an event by name, for programs that read many events of one kind.

use etl_format::Guid;
use etl_format::constants::{PointerSize, hook_class};
use etl_format::read::{Header, Record};

use super::layout::{Layout, Position};
use crate::model::Identity;
use crate::tables::{Entry, Registry, windows};

/// Versions that are tried for an event that the tables have in older versions only.
const VERSIONS: u8 = 32;

/// Where the fields with some names are, in a version of an event.
#[derive(Clone, Debug)]
struct Known<const N: usize> {
    /// The id of the event, or its opcode.
    number: u16,
    version: u8,
    pointers: PointerSize,
    /// `None` if the tables do not have the event.
    fields: Option<([Position; N], Layout)>,
}

/// Reads the fields with some names from the events of one kind. Their positions are looked up in
/// the built-in tables once for each version. A version that the tables do not have is read as the
/// newest older one.
///
/// The tables are the tables of the CLR and of the kernel, then the tables of the providers of
/// Windows. A record of another event of the same provider is read with the layout of its own
/// event: the begin and the end of an operation often have the same fields, but not in all versions
/// (`ContentionStart` of .NET Framework has no fields in version 0, `ContentionStop` has).
///
/// ```
/// use etl_format::read::{Options, Order, Trace};
/// use etl_schema::{providers::CLR_RUNTIME, views::FieldReader};
/// # let bytes = etl_schema::testing::snapshot::example();
///
/// // AppDomainLoad
/// let mut reader = FieldReader::of_event(CLR_RUNTIME, 156, ["AppDomainIndex"]);
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// let mut index = None;
/// while let Some(record) = records.next_record()? {
///     if record.provider() == Some(CLR_RUNTIME) {
///         index = reader.read(&record).and_then(|fields| fields.uint(0));
///     }
/// }
/// assert_eq!(index, Some(1));
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FieldReader<const N: usize> {
    event: Option<(Guid, u16, bool)>,
    names: [&'static str; N],
    known: Vec<Known<N>>,
}

impl<const N: usize> FieldReader<N> {
    /// A reader of an event of a manifest provider, by its id.
    #[must_use]
    pub fn of_event(provider: Guid, id: u16, names: [&'static str; N]) -> Self {
        FieldReader {
            event: Some((provider, id, false)),
            names,
            known: Vec::new(),
        }
    }

    /// A reader of a kernel event, by its hook.
    #[must_use]
    pub fn of_hook(hook: u16, names: [&'static str; N]) -> Self {
        let opcode = hook as u8;
        let event = hook_class(hook).map(|class| (class, opcode.into(), true));
        FieldReader {
            event,
            names,
            known: Vec::new(),
        }
    }

    /// The fields of a record, which has to be of this provider; `None` if the tables do not have
    /// the event.
    #[must_use]
    #[inline]
    pub fn read<'a>(&mut self, record: &Record<'a>) -> Option<FieldValues<'a, N>> {
        let number;
        let version;
        match record.header() {
            Header::Event(header) => {
                number = header.descriptor.id;
                version = header.descriptor.version;
            }
            Header::Full(header) => {
                number = header.opcode.into();
                version = header.version as u8;
            }
            _ => {
                number = record.hook()? & 0xff;
                version = record.bytes().first().copied()?;
            }
        }
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let index = self.known.iter().position(|known| {
            known.number == number && known.version == version && known.pointers == pointers
        });
        let index = match index {
            Some(index) => index,
            None => {
                let fields = self.find(number, version, record.payload(), pointers);
                self.known.push(Known {
                    number,
                    version,
                    pointers,
                    fields,
                });
                self.known.len() - 1
            }
        };
        let (positions, layout) = self.known.get(index)?.fields?;
        Some(FieldValues {
            positions,
            layout,
            payload: record.payload(),
        })
    }

    /// The name that the tables give a value of a field, in the newest version of the event.
    #[must_use]
    pub fn value_name(&self, index: usize, value: u64) -> Option<&'static str> {
        let name = self.names.get(index)?;
        let (_, number, _) = self.event?;
        let fields = &self.entry(number, VERSIONS)?.decoder().schema().fields;
        fields
            .iter()
            .find(|field| &*field.name == *name)?
            .map
            .as_ref()?
            .get(value)
    }

    #[cold]
    fn find(
        &self,
        number: u16,
        version: u8,
        payload: &[u8],
        pointers: PointerSize,
    ) -> Option<([Position; N], Layout)> {
        let (provider, own_number, is_classic) = self.event?;
        let mut decoder = self.entry(number, version).map(Entry::decoder);
        if decoder.is_none() && !is_classic {
            decoder = windows::decoder(provider, number, version, payload, pointers);
        }
        if decoder.is_none() {
            // Events that the tables do not have are read as the event of the reader.
            decoder = self.entry(own_number, version).map(Entry::decoder);
        }
        let decoder = decoder?;
        let positions = Layout::positions(decoder, pointers, self.names);
        Some((positions, Layout::new(decoder, pointers)))
    }

    /// The event in this version, or in the newest older one, or in the next newer one.
    fn entry(&self, number: u16, version: u8) -> Option<Entry<'static>> {
        let older = (0..=version)
            .rev()
            .find_map(|version| self.entry_of_version(number, version));
        older.or_else(|| {
            (version..VERSIONS).find_map(|version| self.entry_of_version(number, version))
        })
    }

    fn entry_of_version(&self, number: u16, version: u8) -> Option<Entry<'static>> {
        let (provider, _, is_classic) = self.event?;
        if !is_classic {
            let identity = Identity::Modern {
                id: number,
                version,
            };
            return Registry::builtin().entry(provider, identity);
        }
        let identity = Identity::Classic {
            opcode: number as u8,
            version: version.into(),
        };
        Registry::classic().entry(provider, identity)
    }
}

/// The fields of an event, in the order of the names of their [`FieldReader`].
#[derive(Clone, Copy, Debug)]
pub struct FieldValues<'a, const N: usize> {
    positions: [Position; N],
    layout: Layout,
    payload: &'a [u8],
}

impl<'a, const N: usize> FieldValues<'a, N> {
    fn position(&self, index: usize) -> Option<Position> {
        self.positions
            .get(index)
            .copied()
            .filter(|at| at.is_known())
    }

    /// An unsigned integer, or an address; `None` if the event does not have the field, or the
    /// payload ends before it.
    #[must_use]
    #[inline]
    pub fn uint(&self, index: usize) -> Option<u64> {
        self.layout.read(self.payload, self.position(index)?)
    }

    /// A text without its NUL: UTF-16, or 8-bit units as the tables have it.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.layout.read(self.payload, self.position(index)?)
    }

    /// The bytes from a field to the end of the payload.
    #[must_use]
    pub fn from(&self, index: usize) -> Option<&'a [u8]> {
        self.layout.rest(self.payload, self.position(index)?)
    }
}
