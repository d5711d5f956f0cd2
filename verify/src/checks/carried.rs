//! Which losses may have taken an event: those of the files that have events of its kind.

use etl_analysis::files::FileFacts;
use etl_analysis::loss::Loss;

use super::Facts;

/// Whose events a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Those of the CLR's providers.
    Clr,
    /// Those of the kernel.
    Kernel,
    /// Any.
    Any,
}

impl Carried {
    fn is_in(self, file: &FileFacts) -> bool {
        match self {
            Carried::Clr => file.has_clr,
            Carried::Kernel => file.has_kernel,
            Carried::Any => true,
        }
    }
}

impl Facts {
    /// The first loss, if any, that may have taken an event within a span. A file with the kernel's
    /// events and none of the CLR's had none of the CLR's to lose where another file has them; and
    /// the other way round. What a file without events of either kind lost may be any.
    pub fn lost(&self, carried: Carried, from: Option<i64>, to: Option<i64>) -> Option<&Loss> {
        let is_anywhere = self.files().iter().any(|file| carried.is_in(file));
        let may_have = |source: usize| {
            let file = self.files().get(source);
            !is_anywhere || file.is_none_or(|f| carried.is_in(f) || !(f.has_clr || f.has_kernel))
        };
        self.losses().iter().find(|loss| loss.touches(from, to) && may_have(loss.source))
    }
}
