//! Shared code of the tests: fuzz targets, and edits of files that share no code with the crates.

pub mod bytes;
pub mod fuzz;

/// Runs the code of docs/format.md with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/format.md")]
pub struct FormatChapter;

/// Runs the code of docs/library.md with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
pub struct LibraryPage;

/// Compiles the code of README.md with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ProjectPage;
