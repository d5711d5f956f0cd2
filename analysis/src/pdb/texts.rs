//! Texts that are each kept once.

use std::collections::HashSet;
use std::sync::Arc;

/// Texts, each kept once.
#[derive(Debug, Default)]
pub(super) struct Texts(HashSet<Arc<str>>);

impl Texts {
    pub fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(kept) = self.0.get(text) {
            return Arc::clone(kept);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}
