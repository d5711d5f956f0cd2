//! Facts about the CLR's providers that several crates need.

pub mod keyword;
