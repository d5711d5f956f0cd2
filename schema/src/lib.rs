//! What ETW providers say about their events.
#![forbid(unsafe_code)]
