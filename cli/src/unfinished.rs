//! Files that are not finished: removed when Ctrl-C or SIGTERM ends the tool.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file or directory that is removed if a signal ends the tool before this is dropped.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        paths().remove(&self.0);
    }
}

/// Creates a file or directory that is removed if a signal ends the tool; `path` is where it is.
pub(crate) fn create<T>(
    create: impl FnOnce() -> io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> io::Result<(T, Unfinished)> {
    signals::watch();
    // A signal waits for the lock: what is created is known by then.
    let mut paths = paths();
    let created = create()?;
    let path = std::path::absolute(path(&created))?;
    paths.insert(path.clone());
    Ok((created, Unfinished(path)))
}

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
mod signals {
    use std::sync::{Once, mpsc};
    use std::{fs, io, thread};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// How often a directory is removed into which another thread is writing.
    const ATTEMPTS: usize = 8;

    /// Waits for signals on a thread of its own, from the first call on.
    pub fn watch() {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            let (registered, wait) = mpsc::channel::<()>();
            // Without the thread a signal ends the tool as it does by default.
            let _ = thread::Builder::new().spawn(move || {
                let signals = Signals::new([SIGINT, SIGTERM]);
                drop(registered);
                if let Ok(mut signals) = signals
                    && let Some(signal) = signals.forever().next()
                {
                    remove_all_and_end(signal);
                }
            });
            // Returns when the sender is dropped.
            let _ = wait.recv();
        });
    }

    fn remove_all_and_end(signal: i32) {
        // The lock is kept to the end: no other file is created from here on.
        let paths = super::paths();
        for path in &*paths {
            let is_removed = |_| match fs::remove_file(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => true,
                Err(_) => fs::remove_dir_all(path).is_ok(),
                Ok(()) => true,
            };
            let _ = (0..ATTEMPTS).any(is_removed);
        }
        // The tool ends by the signal, as its caller expects.
        let _ = emulate_default_handler(signal);
    }
}

/// Other systems end the tool at once.
#[cfg(not(unix))]
mod signals {
    pub fn watch() {}
}
