//! Typed views of the events of the kernel and of the CLR that other crates interpret.
//!
//! A view borrows the payload and allocates nothing. The positions of its fields are looked up in
//! the built-in [tables](crate::tables), once for each event, version and pointer size. A version
//! that the tables do not have is read as the newest older one, since later versions append fields.
//! A field is `None` if the payload ends within or before it.
//!
//! * [`kernel`]: processes, threads, images, samples and stacks.
//! * [`kernel_process`]: the process of an event of `Microsoft-Windows-Kernel-Process`.
//! * [`clr`]: runtimes, domains, assemblies, modules, methods and stacks.
//! * [`merge`]: identities of images, added by a merge.
//!
//! [`FieldReader`] reads fields by name from many events of one kind. For events of other providers
//! see [`Decoder`](crate::decode::Decoder).

pub mod clr;
mod fields;
mod frames;
pub mod kernel;
pub mod kernel_process;
mod layout;
pub mod merge;

pub use fields::{FieldReader, FieldValues};
pub use frames::Frames;
pub use layout::count_texts;

use etl_format::Guid;

/// Identity of a PDB: signature and age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pdb {
    /// Signature.
    pub signature: Guid,
    /// Age.
    pub age: u32,
}

#[cfg(test)]
mod tests;
