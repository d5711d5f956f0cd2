//! The compression formats of compressed traces, each bounded by the size its buffer declares.
