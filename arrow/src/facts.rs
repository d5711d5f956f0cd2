use crate::{Result, tables::Table, write::Recorded};
use arrow_array::RecordBatch;
use etl_format::read::Source;
pub(crate) fn write<S: Source>(
    _recorded: &mut Recorded<S>,
    _tables: &[&'static Table],
    _out: &mut dyn FnMut(&'static Table, RecordBatch) -> Result<()>,
) -> Result<()> {
    Ok(())
}
