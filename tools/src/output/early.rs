//! Brings a growing file to the disk while it is written, so that little is left to wait for at its
//! end.

use std::fs::File;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes that are brought to the disk at once. Each time, file systems write their journal too.
const STEP: u64 = 16 << 20;

/// Time between two looks at the size of the file.
const PAUSE: Duration = Duration::from_millis(10);

/// A thread that brings a file to the disk until this is dropped.
#[derive(Debug)]
pub(super) struct EarlySync {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EarlySync {
    /// Starts the thread. `file` must have been opened for it alone: the system reports an error of
    /// the disk once for each time that a file was opened, and the writer has to learn of it, too.
    pub fn start(file: File) -> Self {
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let mut synced = 0;
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let Ok(size) = file.metadata().map(|m| m.len()) else {
                    return;
                };
                // It is smaller than before if its writer began again.
                if size.abs_diff(synced) >= STEP {
                    if file.sync_data().is_err() {
                        return;
                    }
                    synced = size;
                }
            }
        };
        let thread = thread::Builder::new()
            .name("sync".to_owned())
            .spawn(work)
            .ok();
        EarlySync {
            stop: Some(stop),
            thread,
        }
    }
}

impl Drop for EarlySync {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic, and its errors are found by who syncs the whole file.
            let _ = thread.join();
        }
    }
}
