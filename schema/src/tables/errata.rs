//! Errata: where the reference pages disagree with each other or with what ships.

use std::sync::OnceLock;

use super::error::{TableError, number};
use super::{Provider, TableSource};

/// The table of errata.
pub const ERRATA_TABLE: TableSource = TableSource {
    name: "errata.txt",
    text: include_str!("../../tables/errata.txt"),
};

/// One disagreement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erratum {
    /// Its id: `X01` and so on.
    pub id: String,
    /// What it is about.
    pub about: String,
    /// What the pages say.
    pub documents: String,
    /// What runtimes ship.
    pub shipped: String,
    /// The evidence for it.
    pub evidence: String,
    /// Which of them the shipped tables follow.
    pub follows: String,
    /// The masks that it is about, each after the end of its provider's name.
    masks: Vec<(String, u64)>,
    /// The keywords that it is about, each after the end of its provider's name.
    keywords: Vec<(String, u64)>,
}

impl Erratum {
    /// Whether it is about this mask of this provider as a whole.
    #[must_use]
    pub fn is_of_mask(&self, provider: &Provider, mask: u64) -> bool {
        is_of(&self.masks, provider, |m| m == mask)
    }

    /// Whether it is about a keyword that is in this mask of this provider.
    #[must_use]
    pub fn is_of_keyword(&self, provider: &Provider, mask: u64) -> bool {
        is_of(&self.keywords, provider, |k| k & mask != 0)
    }

    /// Reads a table of errata. `file` names it in errors.
    ///
    /// # Errors
    /// The first error, with its line: an id that appears twice or not in order, an unknown line,
    /// an invalid number, an erratum without one of its parts.
    pub fn parse(file: &str, text: &str) -> Result<Vec<Erratum>, TableError> {
        let mut all: Vec<Erratum> = Vec::new();
        let mut begins = 1;
        for (n, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() || line.starts_with('#') {
                continue;
            }
            let problem = match (line.starts_with(' '), words.as_slice(), all.last_mut()) {
                (false, ["erratum", id, about @ ..], last) => {
                    if let Some(missing) = last.and_then(|erratum| erratum.missing()) {
                        return Err(TableError::new(file, begins, missing));
                    }
                    begins = n + 1;
                    if all.last().is_some_and(|last| last.id.as_str() >= *id) {
                        Some(format!("the erratum {id} is given twice or not in order"))
                    } else {
                        let id = (*id).to_owned();
                        all.push(Erratum {
                            id,
                            about: about.join(" "),
                            ..Erratum::default()
                        });
                        None
                    }
                }
                (true, [kind, words @ ..], Some(last)) => last.line(kind, words).err(),
                _ => Some("a line that means nothing here".to_owned()),
            };
            if let Some(what) = problem {
                return Err(TableError::new(file, n + 1, what));
            }
        }
        match all.last().and_then(Erratum::missing) {
            Some(missing) => Err(TableError::new(file, begins, missing)),
            None => Ok(all),
        }
    }

    /// A line below `erratum`.
    fn line(&mut self, kind: &str, words: &[&str]) -> Result<(), String> {
        let text = match kind {
            "documents" => &mut self.documents,
            "shipped" => &mut self.shipped,
            "evidence" => &mut self.evidence,
            "follows" => &mut self.follows,
            "masks" => return values(words, &mut self.masks),
            "keywords" => return values(words, &mut self.keywords),
            _ => return Err("a line that means nothing in an erratum".to_owned()),
        };
        // Long statements go on over several lines.
        for word in words {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        }
        Ok(())
    }

    fn missing(&self) -> Option<String> {
        let parts = [
            ("documents", &self.documents),
            ("shipped", &self.shipped),
            ("evidence", &self.evidence),
            ("follows", &self.follows),
        ];
        let (name, _) = parts.into_iter().find(|(_, text)| text.is_empty())?;
        Some(format!("the erratum {} has no line `{name}`", self.id))
    }
}

/// The errata, in order of their ids, read once. A table with an error would be empty here; the
/// tests of this crate check that there is none.
#[must_use]
pub fn errata() -> &'static [Erratum] {
    static ERRATA: OnceLock<Vec<Erratum>> = OnceLock::new();
    ERRATA.get_or_init(|| {
        let TableSource { name, text } = ERRATA_TABLE;
        Erratum::parse(name, text).unwrap_or_default()
    })
}

/// The erratum with this id (case does not matter).
///
/// ```
/// let erratum = etl_schema::tables::erratum("X28").ok_or("a known erratum")?;
/// assert_eq!(erratum.id, "X28");
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn erratum(id: &str) -> Option<&'static Erratum> {
    errata().iter().find(|e| e.id.eq_ignore_ascii_case(id))
}

fn is_of(list: &[(String, u64)], provider: &Provider, is: impl Fn(u64) -> bool) -> bool {
    list.iter()
        .any(|(name, value)| provider.is_called(name) && is(*value))
}

/// `PROVIDER VALUE...`
fn values(words: &[&str], out: &mut Vec<(String, u64)>) -> Result<(), String> {
    let [provider, values @ ..] = words else {
        return Err("expected a provider".to_owned());
    };
    if values.is_empty() {
        return Err("expected values after the provider".to_owned());
    }
    for value in values {
        out.push(((*provider).to_owned(), number(value)?));
    }
    Ok(())
}
