//! Names that a recording does not have: the functions of images, and source lines.

use std::fmt;
use std::sync::Arc;

use super::Image;
use crate::Machine;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// Path of the source file as the compiler recorded it.
    pub file: Arc<str>,
    /// Line number, from 1.
    pub line: u32,
}

/// A function, and the source line at an address in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name with its namespaces and classes, without arguments.
    pub name: Arc<str>,
    /// The source line; `None` if it is unknown.
    pub source: Option<SourceLine>,
}

/// The function at an address of an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionOffset {
    /// Name with its namespaces and classes, without arguments.
    pub name: Arc<str>,
    /// Bytes from the start of the function to the address.
    pub offset: u32,
}

/// Names the functions of images, which traces of Windows do not contain.
///
/// With the feature `pdb`, a `pdb::Symbolizer` finds them in PDBs. Debug information of another
/// kind needs one method:
///
/// ```
/// use etl_analysis::Machine;
/// use etl_analysis::symbols::{FunctionNames, FunctionOffset, Image};
///
/// /// The functions of one image, by the offset at which each begins.
/// #[derive(Debug)]
/// struct MapFile(std::collections::BTreeMap<u32, &'static str>);
///
/// impl FunctionNames for MapFile {
///     fn function(&self, _: &Machine, image: &Image<'_>) -> Option<FunctionOffset> {
///         let offset = u32::try_from(image.offset).ok()?;
///         let (start, name) = self.0.range(..=offset).next_back()?;
///         Some(FunctionOffset { name: (*name).into(), offset: offset - start })
///     }
/// }
/// ```
pub trait FunctionNames: fmt::Debug + Send + Sync {
    /// The function at an address of an image; `None` if it is unknown. `machine` is the machine of
    /// the image.
    fn function(&self, machine: &Machine, image: &Image<'_>) -> Option<FunctionOffset>;
}
