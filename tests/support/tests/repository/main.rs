//! Rules about the repository itself: which crate and which module may use which, and its words.

mod commands;
mod layers;
mod modules;
mod source;
mod words;
