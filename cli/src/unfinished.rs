//! Files that are not finished: removed when Ctrl-C, SIGTERM or the end of the terminal ends the
//! tool.

use std::collections::BTreeSet;
#[cfg(any(unix, windows))]
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file or directory that is removed if a signal ends the tool before this is dropped.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// `None` for a file without a name, which the system removes.
    path: Option<PathBuf>,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            paths().remove(path);
        }
    }
}

/// Creates a file or directory that is removed if a signal ends the tool; `path` returns its path,
/// if it has one.
pub(crate) fn create<T>(
    create: impl FnOnce() -> io::Result<T>,
    path: impl FnOnce(&T) -> Option<&Path>,
) -> io::Result<(T, Unfinished)> {
    signals::watch();
    // A signal waits for the lock, so it also removes a file that is being created.
    let mut paths = paths();
    let created = create()?;
    let Some(path) = path(&created) else {
        return Ok((created, Unfinished { path: None }));
    };
    let path = std::path::absolute(path)?;
    paths.insert(path.clone());
    let path = Some(path);
    Ok((created, Unfinished { path }))
}

/// Runs what must not be interrupted half-way, such as giving a file its name. A signal waits for
/// it.
pub(crate) fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    let _paths = paths();
    run()
}

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Attempts to remove a directory. They fail while another thread writes to it.
#[cfg(any(unix, windows))]
const ATTEMPTS: usize = 8;

/// Removes all unfinished files. No other file is created while the result lives.
#[cfg(any(unix, windows))]
fn remove_all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    let paths = paths();
    for path in &*paths {
        for _ in 0..ATTEMPTS {
            if remove(path) {
                break;
            }
        }
    }
    paths
}

/// Removes a file or a directory. Returns whether it is gone.
#[cfg(any(unix, windows))]
fn remove(path: &Path) -> bool {
    match fs::remove_file(path) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::NotFound => true,
        Err(_) => fs::remove_dir_all(path).is_ok(),
    }
}

#[cfg(unix)]
mod signals {
    use std::sync::{Once, mpsc};
    use std::thread;

    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Waits for signals on a thread of its own, from the first call on.
    pub fn watch() {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            // With a handler, a write beyond the largest size of a file is an error like any other
            // (`ulimit -f`).
            let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
            let (registered, wait) = mpsc::channel::<()>();
            // Without the thread a signal ends the tool as it does by default.
            let _ = thread::Builder::new().spawn(move || {
                let mut watched = vec![SIGHUP, SIGINT, SIGTERM];
                let ignored = ignored();
                watched.retain(|signal| ignored & 1 << (signal - 1) == 0);
                let signals = Signals::new(watched);
                drop(registered);
                if let Ok(mut signals) = signals
                    && let Some(signal) = signals.forever().next()
                {
                    let _kept = super::remove_all();
                    // The tool ends by the signal, as its caller expects.
                    let _ = emulate_default_handler(signal);
                }
            });
            // Returns when the sender is dropped.
            let _ = wait.recv();
        });
    }

    /// The signals that the caller wants the tool to ignore, a bit for each: nohup and shells set
    /// them. Only Linux reports them without unsafe code.
    fn ignored() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    }
}

#[cfg(windows)]
mod signals {
    use std::sync::Once;

    /// `STATUS_CONTROL_C_EXIT`: the exit code of a program that Ctrl-C ended.
    const ENDED: i32 = 0xC000_013A_u32.cast_signed();

    /// Waits for Ctrl-C, Ctrl-Break and the end of the console, from the first call on. Windows
    /// calls the handler on a thread of its own.
    pub fn watch() {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            // Without a handler they end the tool as they do by default.
            let _ = ctrlc::set_handler(|| {
                let _kept = super::remove_all();
                std::process::exit(ENDED);
            });
        });
    }
}

/// Other systems end the tool at once.
#[cfg(not(any(unix, windows)))]
mod signals {
    pub fn watch() {}
}
