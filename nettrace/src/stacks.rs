//! The stacks of a stream, by id.

use std::collections::BTreeMap;

use crate::cursor::Cursor;
use crate::error::Result;

/// The stacks since the last sequence point, which makes the writer forget all of them.
#[derive(Debug, Default)]
pub(crate) struct StackTable {
    /// Runs of ids that follow each other, by their first id. A block has one run.
    runs: BTreeMap<u32, StackRun>,
    /// Where each stack ends in `addresses`.
    ends: Vec<usize>,
    addresses: Vec<u64>,
}

/// The place of a stack, which stays the same until all stacks are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackIndex(usize);

/// Stacks whose ids follow each other.
#[derive(Clone, Copy, Debug)]
struct StackRun {
    /// The first one in `StackTable::ends`.
    first: usize,
    count: u32,
}

impl StackTable {
    /// The place of the stack with an id. `None` if none is defined.
    pub fn find(&self, id: u32) -> Option<StackIndex> {
        let (first_id, run) = self.runs.range(..=id).next_back()?;
        let number = id - first_id;
        if number >= run.count {
            return None;
        }
        Some(StackIndex(run.first + number as usize))
    }

    /// The addresses of a stack, innermost first.
    pub fn addresses(&self, index: StackIndex) -> &[u64] {
        let end = self.ends.get(index.0).copied().unwrap_or_default();
        let before = index.0.checked_sub(1);
        let start = before.and_then(|before| self.ends.get(before)).copied();
        let range = start.unwrap_or_default()..end;
        self.addresses.get(range).unwrap_or_default()
    }

    pub fn clear(&mut self) {
        self.runs.clear();
        self.ends.clear();
        self.addresses.clear();
    }

    /// About how many bytes of memory the stacks take.
    pub fn size_in_memory(&self) -> usize {
        let runs = self.runs.len() * (size_of::<u32>() + size_of::<StackRun>()) * 2;
        runs + size_of_val(self.ends.as_slice()) + size_of_val(self.addresses.as_slice())
    }

    /// Adds the stacks of a block. If it is damaged, the intact stacks before the damage are added.
    pub fn read_block(&mut self, cursor: &mut Cursor<'_>, pointer_size: u8) -> Result<()> {
        let first_id = cursor.u32("the first id of a stack block")?;
        let count = cursor.u32("the number of stacks")?;
        let first = self.ends.len();
        let mut result = Ok(());
        let mut read = 0;
        while read < count && result.is_ok() {
            result = self.read_stack(cursor, pointer_size);
            if result.is_ok() {
                read += 1;
            }
        }
        if read > 0 {
            self.runs.insert(first_id, StackRun { first, count: read });
        }
        result
    }

    fn read_stack(&mut self, cursor: &mut Cursor<'_>, pointer_size: u8) -> Result<()> {
        let size = cursor.u32("the size of a stack")?;
        let bytes = cursor.take(size as usize, "a stack")?;
        if pointer_size == 4 {
            let (addresses, _) = bytes.as_chunks::<4>();
            let addresses = addresses.iter().map(|address| u32::from_le_bytes(*address));
            self.addresses.extend(addresses.map(u64::from));
        } else {
            let (addresses, _) = bytes.as_chunks::<8>();
            let addresses = addresses.iter().map(|address| u64::from_le_bytes(*address));
            self.addresses.extend(addresses);
        }
        self.ends.push(self.addresses.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(table: &StackTable, id: u32) -> Option<&[u64]> {
        table.find(id).map(|index| table.addresses(index))
    }

    fn block(first_id: u32, stacks: &[&[u32]]) -> Vec<u8> {
        let mut bytes = first_id.to_le_bytes().to_vec();
        bytes.extend((stacks.len() as u32).to_le_bytes());
        for stack in stacks {
            bytes.extend((size_of_val(*stack) as u32).to_le_bytes());
            bytes.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn stacks_are_found_by_id_in_several_blocks() {
        let mut table = StackTable::default();
        for bytes in [block(5, &[&[1, 2], &[], &[3]]), block(1, &[&[9]])] {
            let read = table.read_block(&mut Cursor::new(&bytes, 0), 4);
            assert!(read.is_ok());
        }
        assert_eq!(get(&table, 5), Some(&[1, 2][..]));
        assert_eq!(get(&table, 6), Some(&[][..]));
        assert_eq!(get(&table, 7), Some(&[3][..]));
        assert_eq!(get(&table, 1), Some(&[9][..]));
        for unknown in [0, 2, 4, 8, u32::MAX] {
            assert_eq!(get(&table, unknown), None, "{unknown}");
        }
        table.clear();
        assert_eq!(get(&table, 5), None);
    }

    #[test]
    fn intact_stacks_before_damage_are_kept() {
        let mut table = StackTable::default();
        let mut bytes = block(1, &[&[1], &[2]]);
        bytes.pop();
        let error = table.read_block(&mut Cursor::new(&bytes, 0), 4).err();
        assert_eq!(error.map(|e| (e.offset, e.code())), Some((20, "truncated")));
        assert_eq!((get(&table, 1), get(&table, 2)), (Some(&[1][..]), None));
    }
}
