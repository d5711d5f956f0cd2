//! Brings a growing file to the disk while it is written, so that the wait at its end is short.

use std::fs::File;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes that are brought to the disk at once. Each time, file systems also write their journal.
const STEP: u64 = 16 << 20;

/// The time after which the size of the file is read again.
const PAUSE: Duration = Duration::from_millis(10);

/// A thread that brings a file to the disk until this is dropped.
#[derive(Debug)]
pub(super) struct EarlySync {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EarlySync {
    /// Starts the thread. `file` must have been opened for the thread alone: the system reports an
    /// error of the disk once for each time that a file was opened, and the writer needs its
    /// report.
    pub fn start(file: File) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("sync".to_owned())
            .spawn(move || sync_until(&stopped, &file))
            .ok();
        EarlySync {
            stop: Some(stop),
            thread,
        }
    }
}

/// Brings the file to the disk again and again, until a message or the end of the sender.
fn sync_until(stopped: &mpsc::Receiver<()>, file: &File) {
    let mut synced = 0;
    while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        let Ok(metadata) = file.metadata() else {
            return;
        };
        // The file is smaller than before if its writer began again.
        if metadata.len().abs_diff(synced) >= STEP {
            if file.sync_data().is_err() {
                return;
            }
            synced = metadata.len();
        }
    }
}

impl Drop for EarlySync {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic. Its errors are found when the whole file is synced.
            let _ = thread.join();
        }
    }
}
