//! Compares what the analysis and the verifier find in the traces of the corpus with their truth.

mod stacks;
mod symbols;
mod tallies;
