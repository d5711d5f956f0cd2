//! The read half: bytes to buffers to records to time order.
