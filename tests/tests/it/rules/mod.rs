//! Runs the rules on valid traces, and on traces with one change that breaks them.

mod base;
mod catalogue;
mod clocks;
mod edit;
mod formats;
mod lifetimes;
mod missing_lists;
mod mutation;
mod ring;
mod rundowns;
mod seam;
mod sessions;
mod unloads;
mod used_again;
