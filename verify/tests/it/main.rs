//! Verification of real traces, and the pages that describe it.

mod docs;
mod real;
mod real_verdicts;
