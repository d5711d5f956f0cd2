//! The observer of records that every operation may have, to show progress.

use std::fmt;

use etl_format::read::Record;

/// A function that sees a record.
type Function<'f> = Box<dyn FnMut(&Record<'_>) + 'f>;

/// A function that is called for every record that an operation reads.
#[derive(Default)]
pub(crate) struct OnRecord<'f>(Option<Function<'f>>);

impl<'f> OnRecord<'f> {
    pub(crate) fn new(f: impl FnMut(&Record<'_>) + 'f) -> Self {
        OnRecord(Some(Box::new(f)))
    }

    #[inline]
    pub(crate) fn call(&mut self, record: &Record<'_>) {
        if let Some(f) = &mut self.0 {
            f(record);
        }
    }
}

impl fmt::Debug for OnRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "OnRecord(set)"
        } else {
            "OnRecord(none)"
        })
    }
}
