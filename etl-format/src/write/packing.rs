//! Buffers compressed on several threads.

use core::fmt;

use crate::constants::BUFFER_HEADER_SIZE;
use crate::error::Result;

use super::crew::{Crew, Work};
use super::pack::Packer;

/// A buffer, and what became of it.
#[derive(Debug)]
pub(super) struct Packed<T> {
    /// Room for the header, then the records as they came.
    pub plain: Vec<u8>,
    /// Room for the header, then the records packed.
    pub packed: Vec<u8>,
    /// What was given along with it.
    pub with: T,
}

/// A packer at work.
struct Press<P>(P);

impl<P: Packer> Work for Press<P> {
    /// The buffer as it came, and packed.
    type Piece = (Vec<u8>, Vec<u8>);

    fn work(&mut self, (plain, packed): &mut Self::Piece) {
        packed.clear();
        packed.resize(BUFFER_HEADER_SIZE, 0);
        self.0.pack(plain.get(BUFFER_HEADER_SIZE..).unwrap_or_default(), packed);
    }
}

/// The buffers under way, and memory for more of them.
pub(super) struct Packing<P: Packer, T> {
    crew: Crew<Press<P>, Press<Box<dyn Packer + Send>>, T>,
    spare: Vec<Vec<u8>>,
}

impl<P: Packer, T> fmt::Debug for Packing<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing")
            .field("format", &self.packer().format())
            .field("crew", &self.crew)
            .finish_non_exhaustive()
    }
}

impl<P: Packer, T> Packing<P, T> {
    pub fn new(packer: P) -> Self {
        let others = packer.others().into_iter().map(Press).collect();
        Packing { crew: Crew::new(Press(packer), others), spare: Vec::new() }
    }

    pub fn packer(&self) -> &P {
        &self.crew.worker().0
    }

    /// Memory for a buffer: empty, and used before where there is some.
    pub fn memory(&mut self) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory
    }

    /// Gives memory back.
    pub fn give_back(&mut self, memory: Vec<u8>) {
        if self.spare.len() <= 2 * self.crew.window() {
            self.spare.push(memory);
        }
    }

    /// Sets a buffer on its way, which begins with room for its header.
    pub fn push(&mut self, plain: Vec<u8>, with: T) {
        let (packed, bytes) = (self.memory(), plain.len());
        self.crew.push((plain, packed), bytes, with);
    }

    /// Whether so much is under way that the oldest has to be waited for.
    pub fn is_full(&self) -> bool {
        self.crew.is_full()
    }

    /// The oldest buffer under way, as [`Crew::pop`] gives it.
    ///
    /// # Errors
    /// When a packer on another thread has panicked.
    pub fn pop(&mut self, wait: bool) -> Result<Option<Packed<T>>> {
        let done = self.crew.pop(wait)?;
        Ok(done.map(|((plain, packed), with)| Packed { plain, packed, with }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::CompressionFormat;

    /// Packs a buffer into its length.
    struct Lengths(usize);

    impl Packer for Lengths {
        fn format(&self) -> CompressionFormat {
            CompressionFormat::XPRESS
        }

        fn pack(&mut self, input: &[u8], out: &mut Vec<u8>) {
            out.push(input.len() as u8);
        }

        fn others(&self) -> Vec<Box<dyn Packer + Send>> {
            (0..self.0).map(|_| Box::new(Lengths(0)) as Box<dyn Packer + Send>).collect()
        }
    }

    #[test]
    fn buffers_are_packed_behind_room_for_their_headers() {
        for others in [0, 2] {
            let mut packing = Packing::new(Lengths(others));
            let mut number = 0;
            for records in 0..100 {
                let mut plain = packing.memory();
                plain.resize(BUFFER_HEADER_SIZE + records, 7);
                packing.push(plain, records);
                while let Some(done) = packing.pop(packing.is_full() || records == 99).unwrap() {
                    assert_eq!(done.with, number);
                    assert_eq!(done.plain.len(), BUFFER_HEADER_SIZE + number);
                    assert_eq!(
                        done.packed,
                        [vec![0; BUFFER_HEADER_SIZE], vec![number as u8]].concat()
                    );
                    packing.give_back(done.plain);
                    packing.give_back(done.packed);
                    number += 1;
                }
            }
            assert_eq!(number, 100);
        }
    }
}
