//! Processes and their native images.

use etl_format::constants::PointerSize;
use etl_format::{Guid, ProcessId};
use serde::Serialize;

use super::{
    AppDomainPlan, AssemblyPlan, ClrPlan, MethodPlan, ModuleKind, ModulePlan, Sku, WindowsVersion,
};
use crate::time::Nanos;

/// A process: its lifetime and its content.
///
/// ```
/// use etl_synth::SECOND;
/// use etl_synth::model::ProcessPlan;
///
/// let app = ProcessPlan { exit: Some(2 * SECOND), ..ProcessPlan::new("App.exe") };
/// assert_eq!((app.command_line.as_str(), app.threads), ("\"App.exe\"", 2));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessPlan {
    /// File name of its executable.
    pub name: String,
    /// Its id; chosen by the simulation if 0.
    pub pid: ProcessId,
    /// Process id of its parent.
    pub parent: ProcessId,
    /// Its command line.
    pub command_line: String,
    /// The SID of its user; a user of the machine if empty.
    pub user: Vec<u8>,
    /// Width of its pointers; the machine's when `None`. A 32-bit machine runs no others.
    pub pointer_size: Option<PointerSize>,
    /// When it starts. A process that exists before a trace starts before its session.
    pub start: Nanos,
    /// When it exits; never when `None`.
    pub exit: Option<Nanos>,
    /// Number of worker threads.
    pub threads: u32,
    /// Native images besides its executable and the images of every process.
    pub images: Vec<ImagePlan>,
    /// Its CLRs, in the order in which they start.
    pub clrs: Vec<ClrPlan>,
}

impl ProcessPlan {
    /// A process with two threads that runs from the beginning to the end.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        ProcessPlan {
            command_line: format!("\"{name}\""),
            name,
            threads: 2,
            ..ProcessPlan::default()
        }
    }

    /// A process of .NET 6 that loads one assembly with these methods. Executable, assembly and
    /// module have the same name.
    ///
    /// ```
    /// use etl_synth::model::{CodeKind, MethodPlan, ProcessPlan};
    ///
    /// let app = ProcessPlan::managed("Shop.exe", MethodPlan::many(20, CodeKind::Jitted));
    /// let assembly = &app.clrs[0].domains[0].assemblies[0];
    /// assert_eq!(assembly.name, "Shop");
    /// assert_eq!(assembly.modules[0].path, "C:\\Shop\\Shop.dll");
    /// ```
    #[must_use]
    pub fn managed(name: impl Into<String>, methods: MethodPlan) -> Self {
        let name = name.into();
        let stem = name.strip_suffix(".exe").unwrap_or(&name);
        let path = format!("C:\\{stem}\\{stem}.dll");
        let module = ModulePlan::new(path, ModuleKind::Il).with_methods(methods);
        let assembly = AssemblyPlan::new(stem).with_module(module);
        let domain = AppDomainPlan::new("clrhost").with_assembly(assembly);
        let clr = ClrPlan::new(Sku::Core, [6, 0, 100, 0]).with_domain(domain);
        ProcessPlan::new(name).with_clr(clr)
    }

    /// Adds a CLR.
    #[must_use]
    pub fn with_clr(mut self, clr: ClrPlan) -> Self {
        self.clrs.push(clr);
        self
    }
}

/// A native image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePlan {
    /// Path with a drive letter: `C:\Windows\System32\ntdll.dll`.
    pub path: String,
    /// Bytes in memory.
    pub size: u32,
    /// Identity of its PDB; derived from the path if `None`.
    pub pdb: Option<PdbIdentity>,
    /// Whether it has no PDB.
    pub no_pdb: bool,
    /// The version information of its file.
    pub about: VersionInfo,
}

/// The identity of a PDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PdbIdentity {
    /// Its signature.
    #[serde(rename = "pdb_signature", serialize_with = "as_text")]
    pub signature: Guid,
    /// Its age.
    #[serde(rename = "pdb_age")]
    pub age: u32,
}

/// Serializes a GUID or a name as text.
pub(crate) fn as_text<S: serde::Serializer>(
    text: &impl core::fmt::Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(text)
}

/// The version resource of the file of an image; `None` means the usual value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionInfo {
    /// Whether it has no such resource.
    pub nothing: bool,
    /// Its version: four numbers, and perhaps text after them.
    pub version: Option<String>,
    /// The description of the file.
    pub description: Option<String>,
    /// The company that made it.
    pub company: Option<String>,
    /// The product that it is part of.
    pub product: Option<String>,
    /// The language of its texts, as Windows numbers them; 0 is none.
    pub language: Option<u16>,
}

/// The version information of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileVersion {
    /// Its version: four numbers, and perhaps text after them.
    #[serde(rename = "file_version")]
    pub version: String,
    /// The description of the file.
    pub description: String,
    /// The company that made it.
    pub company: String,
    /// The product that it is part of.
    pub product: String,
    /// The language of its texts.
    pub language: u16,
}

impl VersionInfo {
    /// The version information of the file of a path. Files in the directory of Windows are part of
    /// it, others have version 1.0.
    #[must_use]
    pub(crate) fn of(&self, path: &str, os: WindowsVersion) -> Option<FileVersion> {
        if self.nothing {
            return None;
        }
        let lower = path.to_lowercase();
        let in_windows = ["c:\\windows\\", "\\systemroot\\"]
            .iter()
            .any(|start| lower.starts_with(start));
        let file = path.rsplit('\\').next().unwrap_or(path);
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let WindowsVersion {
            major,
            minor,
            build,
        } = os;
        let usual = if !in_windows {
            FileVersion {
                version: "1.0.0.0".to_owned(),
                description: stem.to_owned(),
                company: String::new(),
                product: stem.to_owned(),
                language: 0,
            }
        } else {
            // The revision is 1 since Windows 10.
            let revision = if major >= 10 { 1 } else { 16_384 };
            FileVersion {
                version: format!("{major}.{minor}.{build}.{revision}"),
                description: format!("{stem} of Windows"),
                company: "Microsoft Corporation".to_owned(),
                product: "Microsoft\u{ae} Windows\u{ae} Operating System".to_owned(),
                language: 1033,
            }
        };
        Some(FileVersion {
            version: self.version.clone().unwrap_or(usual.version),
            description: self.description.clone().unwrap_or(usual.description),
            company: self.company.clone().unwrap_or(usual.company),
            product: self.product.clone().unwrap_or(usual.product),
            language: self.language.unwrap_or(usual.language),
        })
    }
}

impl FileVersion {
    /// The numbers of its version, without the text after them.
    #[must_use]
    pub fn numbers(&self) -> String {
        let first = self.version.split_whitespace().next().unwrap_or_default();
        let mut parts: Vec<u16> = first
            .split('.')
            .map(|part| part.parse().unwrap_or(0))
            .collect();
        parts.resize(4, 0);
        parts
            .iter()
            .map(u16::to_string)
            .collect::<Vec<_>>()
            .join(".")
    }
}

impl ImagePlan {
    /// An image of a path, half a MiB long.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        ImagePlan {
            path: path.into(),
            size: 0x8_0000,
            ..ImagePlan::default()
        }
    }
}
