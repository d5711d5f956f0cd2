//! Text with `*` and `?`.

/// Text with `*` for any characters and `?` for a single one, in lower case.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<char>);

/// A `*` of a pattern, and the text that it matches so far.
struct Star {
    /// The index of the `*` in the pattern.
    index: usize,
    /// The index in the text of the first character after its match.
    end: usize,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Pattern(text.to_lowercase().chars().collect())
    }

    /// Whether the whole text matches, case-insensitively.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.to_lowercase().chars().collect();
        // The indices of the next characters of the pattern and of the text.
        let mut next = 0;
        let mut position = 0;
        let mut last_star: Option<Star> = None;
        while let Some(character) = text.get(position) {
            match self.0.get(next) {
                Some('*') => {
                    last_star = Some(Star {
                        index: next,
                        end: position,
                    });
                    next += 1;
                }
                Some(expected) if *expected == '?' || expected == character => {
                    next += 1;
                    position += 1;
                }
                // The last `*` has to match one more character.
                _ => {
                    let Some(star) = &mut last_star else {
                        return false;
                    };
                    star.end += 1;
                    next = star.index + 1;
                    position = star.end;
                }
            }
        }
        self.0.iter().skip(next).all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in [
            ("GC*", "GCStart"),
            ("*load*", "ModuleLoad_V2"),
            ("method?oad", "MethodLoad"),
            ("*", ""),
            ("a*b*c", "aXbbYc"),
        ] {
            assert!(Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in [("GC", "GCStart"), ("?", ""), ("a*b", "abc")] {
            assert!(!Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
    }
}
