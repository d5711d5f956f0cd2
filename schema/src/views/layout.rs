//! Positions of fields in the payloads of events, from their schemas, and structs that read them.

use std::sync::OnceLock;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, utf16_nul};

use super::Frames;
use crate::decode::{Decoder, Reach};
use crate::tables::Entry;

/// Fields of variable size that a layout steps over.
const MAX_VARIABLE: usize = 7;

/// Position of a field: the number of fields of variable size before it, and its offset from the
/// end of the last of them (or from the start of the payload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    variable: u8,
    /// Bytes of the field; 0 if its size is not fixed, or is above 255.
    size: u8,
    offset: u16,
}

impl Position {
    /// The position of a field that the event does not have.
    pub const NONE: Position = Position {
        variable: u8::MAX,
        offset: 0,
        size: 0,
    };

    /// Whether the event has the field.
    pub fn is_known(self) -> bool {
        self != Position::NONE
    }
}

/// The fixed parts of a payload and the fields of variable size between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes of the fixed fields before each field of variable size, and the kind of that field.
    parts: [(u16, Reach); MAX_VARIABLE],
    /// Bytes after the last field of variable size.
    tail: u16,
    pub pointers: PointerSize,
}

impl Layout {
    pub fn new(decoder: &Decoder, pointers: PointerSize) -> Self {
        let mut parts = [(0u16, Reach::Open); MAX_VARIABLE];
        let mut index = 0;
        let mut tail = 0u16;
        for (_, reach) in decoder.reaches(pointers) {
            let part = parts.get_mut(index);
            if let Reach::Fixed(bytes) = reach {
                tail = tail.saturating_add(bytes);
                if let Some((fixed, _)) = part {
                    *fixed = tail;
                }
            } else {
                if let Some((_, variable)) = part {
                    *variable = reach;
                }
                index += 1;
                tail = 0;
            }
        }
        Layout {
            parts,
            tail,
            pointers,
        }
    }

    /// The position of the field with the first of these names that the event has;
    /// [`Position::NONE`] if it has none of them.
    pub fn find(decoder: &Decoder, pointers: PointerSize, names: &[&str]) -> Position {
        let mut positions = names
            .iter()
            .map(|name| Layout::position(decoder, pointers, name));
        positions.find(|at| at.is_known()).unwrap_or(Position::NONE)
    }

    /// The positions of the fields with these names.
    pub fn positions<const N: usize>(
        decoder: &Decoder,
        pointers: PointerSize,
        names: [&str; N],
    ) -> [Position; N] {
        names.map(|name| Layout::position(decoder, pointers, name))
    }

    /// The position of the field with this name; [`Position::NONE`] if the event does not have it.
    pub fn position(decoder: &Decoder, pointers: PointerSize, name: &str) -> Position {
        let mut position = Position {
            variable: 0,
            offset: 0,
            size: 0,
        };
        for (field, reach) in decoder.reaches(pointers) {
            let size = if let Reach::Fixed(bytes) = reach {
                bytes
            } else {
                0
            };
            if &*field.name == name {
                return Position {
                    size: u8::try_from(size).unwrap_or(0),
                    ..position
                };
            }
            position = match reach {
                Reach::Fixed(_) => Position {
                    offset: position.offset.saturating_add(size),
                    ..position
                },
                _ => Position {
                    variable: position.variable.saturating_add(1),
                    offset: 0,
                    size: 0,
                },
            };
        }
        Position::NONE
    }

    /// Bytes before the first field of variable size.
    #[inline]
    pub const fn prefix(&self) -> usize {
        self.parts[0].0 as usize
    }

    /// Bytes after the last field of variable size.
    #[inline]
    pub const fn tail(&self) -> usize {
        self.tail as usize
    }

    /// Where a position is in this payload.
    #[inline]
    fn start(&self, payload: &[u8], at: Position) -> Option<usize> {
        let mut start = 0usize;
        for (fixed, variable) in self.parts.get(..usize::from(at.variable))? {
            start += usize::from(*fixed);
            start += len(*variable, payload.get(start..)?)?;
        }
        Some(start + usize::from(at.offset))
    }

    /// An unsigned integer or a pointer.
    #[inline(always)]
    fn uint(&self, payload: &[u8], at: Position) -> Option<u64> {
        let start = if at.variable == 0 {
            usize::from(at.offset)
        } else {
            self.start(payload, at)?
        };
        match at.size {
            8 => payload.u64_at(start),
            4 => payload.u32_at(start).map(u64::from),
            2 => payload.u16_at(start).map(u64::from),
            1 => payload.u8_at(start).map(u64::from),
            _ => None,
        }
    }

    /// The value of a field.
    #[inline(always)]
    pub fn read<'a, T: Value<'a>>(&self, payload: &'a [u8], at: Position) -> Option<T> {
        T::read(self, payload, at)
    }

    /// The bytes from a position to the end.
    #[inline]
    pub fn rest<'a>(&self, payload: &'a [u8], at: Position) -> Option<&'a [u8]> {
        payload.get(self.start(payload, at)?..)
    }

    /// Reads several fields of a payload, each after the one before it.
    pub fn walk<'l, 'a>(&'l self, payload: &'a [u8]) -> Walk<'l, 'a> {
        Walk {
            layout: self,
            payload,
            part: 0,
            start: 0,
        }
    }

    /// A text without its NUL, or a SID.
    fn variable<'a>(&self, payload: &'a [u8], at: Position) -> Option<&'a [u8]> {
        let (_, reach) = self.parts.get(usize::from(at.variable))?;
        let rest = self.rest(payload, at)?;
        let len = len(*reach, rest)?;
        match *reach {
            Reach::Utf16 => rest.get(..len - 2),
            Reach::Ansi => rest.get(..len - 1),
            // The kernel stores a TOKEN_USER before the SID, or four zero bytes instead of both.
            Reach::Sid(pointer) => rest.get((2 * pointer).min(len)..len),
            Reach::Fixed(_) | Reach::Open => None,
        }
    }
}

/// Reads several texts of a payload in a single pass over it.
#[derive(Debug)]
pub(super) struct Walk<'l, 'a> {
    layout: &'l Layout,
    payload: &'a [u8],
    /// Fields of variable size that were passed.
    part: usize,
    /// Where the last of them ends.
    start: usize,
}

impl<'a> Walk<'_, 'a> {
    /// Passes the next field of variable size; returns where it begins.
    fn pass(&mut self) -> Option<usize> {
        let &(fixed, reach) = self.layout.parts.get(self.part)?;
        let start = self.start + usize::from(fixed);
        let bytes = len(reach, self.payload.get(start..)?)?;
        self.part += 1;
        self.start = start + bytes;
        Some(start)
    }

    /// The next text in UTF-16 at a position, without its NUL.
    pub fn text(&mut self, at: Position) -> Option<&'a [u8]> {
        while self.part < usize::from(at.variable) {
            self.pass()?;
        }
        let start = self.pass()?;
        self.payload.get(start..self.start.checked_sub(2)?)
    }

    /// The next unsigned integer at a position.
    pub fn u64(&mut self, at: Position) -> Option<u64> {
        while self.part < usize::from(at.variable) {
            self.pass()?;
        }
        self.payload.u64_at(self.start + usize::from(at.offset))
    }
}

/// What fields are read as.
pub(super) trait Value<'a>: Sized {
    fn read(layout: &Layout, payload: &'a [u8], at: Position) -> Option<Self>;
}

/// Text in UTF-16 that ends at a NUL or at the end of the payload.
pub(super) struct OpenText<'a>(pub &'a [u8]);

macro_rules! values {
    ($($value:ty: |$layout:ident, $payload:ident, $at:ident| $read:expr;)*) => {
        $(impl<'a> Value<'a> for $value {
            #[inline(always)]
            fn read($layout: &Layout, $payload: &'a [u8], $at: Position) -> Option<Self> {
                $read
            }
        })*
    };
}

values! {
    u64: |layout, payload, at| layout.uint(payload, at);
    i64: |layout, payload, at| layout.uint(payload, at).map(u64::cast_signed);
    u32: |layout, payload, at| layout.uint(payload, at).map(|value| value as u32);
    i32: |layout, payload, at| layout.uint(payload, at).map(|value| value as i32);
    u16: |layout, payload, at| layout.uint(payload, at).map(|value| value as u16);
    Guid: |layout, payload, at| payload.guid_at(layout.start(payload, at)?);
    &'a [u8]: |layout, payload, at| layout.variable(payload, at);
    Frames<'a>: |layout, payload, at| {
        Some(Frames::new(layout.rest(payload, at)?, layout.pointers))
    };
    OpenText<'a>: |layout, payload, at| {
        let text = layout.rest(payload, at)?;
        text.get(..utf16_nul(text).unwrap_or(text.len())).map(OpenText)
    };
}

/// Declares a view: a struct with the fields that every version of an event has, which are read at
/// once, and methods that read further fields. For names after a semicolon, only the position is
/// kept. Each one states the name of the field in the table. A field `or` a value has this value in
/// versions without the field.
macro_rules! view {
    (
        $(#[$doc:meta])*
        $view:ident, $layout:ident {
            $(
                $(#[$field_doc:meta])*
                $field:ident: $ty:ty = $($name:literal)|+ $(or $absent:literal)?,
            )*
        }
        $($(#[$method_doc:meta])* $vis:vis fn $method:ident: $method_ty:ty = $method_name:literal;)*
        $(; $($walked:ident = $walked_name:literal;)*)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $view<'a> {
            $($(#[$field_doc])* pub $field: $ty,)*
            at: &'static $layout,
            payload: &'a [u8],
        }

        impl std::fmt::Debug for $view<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut view = f.debug_struct(stringify!($view));
                view$(.field(stringify!($field), &self.$field))*.finish_non_exhaustive()
            }
        }

        impl<'a> $view<'a> {
            $(
                $(#[$method_doc])*
                #[must_use]
                $vis fn $method(&self) -> Option<$method_ty> {
                    self.at.layout.read(self.payload, self.at.$method)
                }
            )*
        }

        /// Where the fields are.
        #[derive(Debug)]
        pub(super) struct $layout {
            $($field: Position,)*
            $($method: Position,)*
            $($($walked: Position,)*)?
            layout: Layout,
        }

        impl $layout {
            pub(super) fn new(decoder: &Decoder, pointers: PointerSize) -> Self {
                $layout {
                    $($field: Layout::find(decoder, pointers, &[$($name),+]),)*
                    $($method: Layout::position(decoder, pointers, $method_name),)*
                    $($($walked: Layout::position(decoder, pointers, $walked_name),)*)?
                    layout: Layout::new(decoder, pointers),
                }
            }

            #[inline]
            pub(super) fn read<'a>(&'static self, payload: &'a [u8]) -> Option<$view<'a>> {
                let layout = &self.layout;
                Some($view {
                    $($field: layout.read(payload, self.$field)
                        $(.or_else(|| (!self.$field.is_known()).then_some($absent)))? ?,)*
                    at: self,
                    payload,
                })
            }
        }
    };
}
pub(super) use view;

/// Versions of one event; real events have far fewer.
const VERSIONS: u8 = 32;

/// Layouts of events by a key (a hook or an id), version and width of pointers.
#[derive(Debug)]
pub(super) struct Catalogue<T> {
    /// The first version of each key, and how many there are from version 0.
    keys: Vec<(u16, u8)>,
    versions: Vec<Version<T>>,
    layout: fn(u16, &Decoder, PointerSize) -> Option<T>,
}

/// A version of an event.
#[derive(Debug)]
struct Version<T> {
    entry: Entry<'static>,
    /// For narrow and for wide pointers; found when the first event comes.
    layouts: OnceLock<Option<[T; 2]>>,
}

impl<T> Catalogue<T> {
    /// The layouts of keys in ascending order. A version that the tables lack is read as the one
    /// before it, and if there is none, as the first one.
    pub fn new(
        keys: impl IntoIterator<Item = u16>,
        entry: impl Fn(u16, u8) -> Option<Entry<'static>>,
        layout: fn(u16, &Decoder, PointerSize) -> Option<T>,
    ) -> Self {
        let mut catalogue = Catalogue {
            keys: Vec::new(),
            versions: Vec::new(),
            layout,
        };
        for key in keys {
            let entries: Vec<_> = (0..VERSIONS).map(|version| entry(key, version)).collect();
            let Some(mut last) = entries.iter().copied().flatten().next() else {
                continue;
            };
            let newest = entries.iter().rposition(Option::is_some).unwrap_or(0);
            let first = u16::try_from(catalogue.versions.len()).unwrap_or(u16::MAX);
            catalogue.keys.resize(usize::from(key), (0, 0));
            catalogue
                .keys
                .push((first, u8::try_from(newest + 1).unwrap_or(VERSIONS)));
            for version in entries.into_iter().take(newest + 1) {
                last = version.unwrap_or(last);
                catalogue.versions.push(Version {
                    entry: last,
                    layouts: OnceLock::new(),
                });
            }
        }
        catalogue
    }

    /// A version of an event and `true`; for a version newer than the tables have, the newest one
    /// and `false`.
    #[inline]
    fn version(&self, key: u16, version: u8) -> Option<(&Version<T>, bool)> {
        let &(first, count) = self.keys.get(usize::from(key))?;
        let newest = count.checked_sub(1)?;
        let index = usize::from(first) + usize::from(version.min(newest));
        Some((self.versions.get(index)?, version <= newest))
    }

    /// The decoder of an event.
    pub fn decoder(&self, key: u16, version: u8) -> Option<&'static Decoder> {
        Some(self.version(key, version)?.0.entry.decoder())
    }

    /// The layout of an event and `true`; for a version newer than the tables have, the layout of
    /// the newest one and `false`.
    #[inline]
    pub fn event(&self, key: u16, version: u8, pointers: PointerSize) -> Option<(&T, bool)> {
        let (version, is_known) = self.version(key, version)?;
        let layouts = version.layouts.get_or_init(|| {
            let decoder = version.entry.decoder();
            let narrow = (self.layout)(key, decoder, PointerSize::P4)?;
            let wide = (self.layout)(key, decoder, PointerSize::P8)?;
            Some([narrow, wide])
        });
        let [narrow, wide] = layouts.as_ref()?;
        Some((
            if pointers == PointerSize::P8 {
                wide
            } else {
                narrow
            },
            is_known,
        ))
    }
}

/// The bytes of a field of variable size, its NUL included.
#[inline]
fn len(reach: Reach, data: &[u8]) -> Option<usize> {
    match reach {
        Reach::Utf16 => utf16_nul(data).map(|end| end + 2),
        Reach::Ansi => data.iter().position(|&byte| byte == 0).map(|end| end + 1),
        Reach::Sid(pointer) => crate::decode::wbem_sid_len(pointer, data),
        Reach::Fixed(_) | Reach::Open => None,
    }
}

/// The number of texts in UTF-16, each with its NUL, of which `bytes` consists; `None` if bytes are
/// left after the last one.
///
/// Counting the NULs takes a fraction of the time that finding each of them takes.
#[must_use]
pub fn count_texts(bytes: &[u8]) -> Option<usize> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return None;
    };
    if units.last() != Some(&[0, 0]) {
        return None;
    }
    Some(
        units
            .chunks(1 << 12)
            .map(|units| usize::from(count_nuls(units)))
            .sum(),
    )
}

/// The number of NULs in at most 4096 units, so that it cannot overflow. The compiler adds eight
/// sums of 16 bits at a time.
#[inline]
fn count_nuls(units: &[[u8; 2]]) -> u16 {
    units.iter().fold(0, |sum, unit| {
        sum + u16::from(u16::from_le_bytes(*unit) == 0)
    })
}
