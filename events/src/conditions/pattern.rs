//! Text with `*` and `?`.

/// Text with `*` for any characters and `?` for a single one, whatever the case of letters.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<char>);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Pattern(text.to_lowercase().chars().collect())
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.to_lowercase().chars().collect();
        // Where the last `*` is in the pattern, and how much of the text it stands for so far.
        let (mut at, mut from, mut star) = (0, 0, None);
        while from < text.len() {
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at, from));
                    at += 1;
                }
                Some(c) if *c == '?' || Some(c) == text.get(from) => {
                    at += 1;
                    from += 1;
                }
                _ => {
                    let Some((pattern, taken)) = star else {
                        return false;
                    };
                    (at, from) = (pattern + 1, taken + 1);
                    star = Some((pattern, taken + 1));
                }
            }
        }
        self.0.iter().skip(at).all(|c| *c == '*')
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
