//! The rules against sound traces and against traces that break them, one change at a time.

mod base;
mod catalogue;
mod edit;
mod formats;
mod mutation;
