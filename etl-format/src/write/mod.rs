//! The write half: records to buffers to bytes. Shares constants with the read half, not layouts.
