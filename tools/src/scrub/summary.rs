//! The result of scrubbing.

use std::collections::BTreeMap;

use etl_format::read::Damage;

use super::policy::Category;

/// The result of scrubbing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Records read.
    pub records: u64,
    /// Records that were changed.
    pub changed: u64,
    /// Records whose payload has no known schema: only patterns and listed texts were searched.
    pub undecoded: u64,
    /// Values replaced by category, by [`Category::ALL`].
    pub categories: [u64; Category::ALL.len()],
    /// Values replaced by the name of their field.
    pub fields: BTreeMap<String, u64>,
    /// Occurrences of users' and machines' names, from anywhere in the trace, that were replaced.
    pub names: u64,
    /// Removed occurrences of each listed text.
    pub secrets: Vec<u64>,
    /// Occurrences of listed texts in bytes that cannot be changed.
    pub left: u64,
    /// Records with a known schema that kept their length because they could not be encoded again.
    pub lengths_kept: u64,
    /// Parts of the source that could not be read.
    pub damage: Vec<Damage>,
}

impl Summary {
    /// Adds the replacements in one record.
    pub(super) fn add(&mut self, part: &Summary) {
        self.categories.iter_mut().zip(part.categories).for_each(|(all, some)| *all += some);
        self.secrets.iter_mut().zip(&part.secrets).for_each(|(all, some)| *all += some);
        for (name, count) in &part.fields {
            *self.fields.entry(name.clone()).or_default() += count;
        }
        self.names += part.names;
    }

    pub(super) fn count(&mut self, category: Category) {
        if let Some(count) = self.categories.get_mut(category as usize) {
            *count += 1;
        }
    }
}
