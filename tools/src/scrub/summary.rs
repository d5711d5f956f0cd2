//! The result of scrubbing.

use std::collections::BTreeMap;

use etl_format::read::Damage;
use serde::Serialize;

use super::policy::Category;
use crate::damage::is_damaged;

/// The result of scrubbing. `docs/rewrite.md` describes its JSON.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Records read.
    pub records: u64,
    /// Records that were changed.
    pub changed: u64,
    /// Records whose payload has no known schema: only patterns and listed texts were searched.
    pub undecoded: u64,
    /// Values replaced, by category; every category is there.
    pub categories: BTreeMap<Category, u64>,
    /// Occurrences of users' and machines' names, from anywhere in the trace, that were replaced.
    pub names: u64,
    /// Values replaced, by the name of their field.
    pub fields: BTreeMap<String, u64>,
    /// Removed occurrences of each listed text, in the order of the list.
    pub secrets: Vec<u64>,
    /// Occurrences of listed texts in bytes that cannot be changed.
    #[serde(skip)]
    pub left: u64,
    /// Records with a known schema that kept their length because they could not be encoded again.
    pub lengths_kept: u64,
    /// Parts of the source that could not be read.
    #[serde(rename = "damaged", serialize_with = "is_damaged")]
    pub damage: Vec<Damage>,
}

impl Summary {
    /// All counts are 0. `secrets` is the number of listed texts.
    pub(super) fn new(secrets: usize) -> Self {
        Summary {
            records: 0,
            changed: 0,
            undecoded: 0,
            categories: Category::ALL.map(|category| (category, 0)).into(),
            names: 0,
            fields: BTreeMap::new(),
            secrets: vec![0; secrets],
            left: 0,
            lengths_kept: 0,
            damage: Vec::new(),
        }
    }

    /// Adds the replacements in one record.
    pub(super) fn add(&mut self, part: &Summary) {
        for (category, count) in &part.categories {
            *self.categories.entry(*category).or_default() += count;
        }
        for (count, added) in self.secrets.iter_mut().zip(&part.secrets) {
            *count += added;
        }
        for (name, count) in &part.fields {
            *self.fields.entry(name.clone()).or_default() += count;
        }
        self.names += part.names;
    }

    /// Counts a value that was replaced, unless the policy named its field.
    pub(super) fn count(&mut self, category: impl Into<Option<Category>>) {
        if let Some(category) = category.into() {
            *self.categories.entry(category).or_default() += 1;
        }
    }

    /// Counts a field that was replaced.
    pub(super) fn count_field(&mut self, name: &str) {
        match self.fields.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.fields.insert(name.to_owned(), 1)),
        }
    }
}
