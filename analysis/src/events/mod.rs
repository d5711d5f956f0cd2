//! Fields of the kernel's and the CLR's events.

pub mod clr;
pub mod frames;
pub mod kernel;
mod texts;

pub use texts::whole_texts;
