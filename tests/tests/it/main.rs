//! Tests that need several crates: real traces, other projects' readers, the corpus, the pages of
//! `docs/`.

mod captures;
mod conformance;
mod cookbook;
mod corpus;
mod cpu_profile;
mod event_pipe;
mod exports;
mod firefox;
mod format_page;
mod hostile;
mod kernel_providers;
mod kinds;
mod merged;
mod mutations;
mod native_symbols;
mod packets;
mod perfetto;
mod pins;
mod portable_symbols;
mod rules;
mod runtime_reports;
mod sampled;
mod security;
mod silent_losses;
#[expect(dead_code, reason = "the tests of etl-synth need more of it")]
#[path = "../../../synth/tests/it/simulated.rs"]
mod simulated;
mod simulated_numbers;
mod size_bits;
mod sound_recordings;
mod statistics;
mod synth;
mod synth_truth;
mod thread_waits;
mod tiers;
