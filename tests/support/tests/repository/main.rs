//! Rules about the repository itself: which crate and which module may use which, the list of
//! modules, and the width of lines.

mod architecture;
mod commands;
mod layers;
mod modules;
mod source;
mod width;
mod workspace;
