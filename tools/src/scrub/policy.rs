//! Which data is replaced, and how.

use std::collections::BTreeMap;

use etl_schema::{Field, InType};

/// What is done to a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Keep it.
    #[default]
    Keep,
    /// Replace it by a value that depends on it and on the salt: equal values get equal
    /// replacements.
    Hash,
    /// Replace it by filler: `*` in text, 0 elsewhere.
    Drop,
}

etl_schema::named! {
    /// Kinds of private data, recognized by pattern or by the names and types of fields.
    #[non_exhaustive]
    Category {
        /// Owners of home directories, and fields that hold names of users.
        Users "users",
        /// Names of the machine and its domain.
        Machines "machines",
        /// Arguments in command lines; the program stays.
        CommandLines "command-lines",
        /// SIDs of accounts.
        Sids "sids",
        /// Directories of paths; file names stay.
        Paths "paths",
        /// IP addresses.
        Ips "ips",
        /// Addresses of memory.
        Addresses "addresses",
    }
}

/// Actions by category and by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    categories: [Action; Category::ALL.len()],
    /// By name in lower case; precedes the categories.
    fields: BTreeMap<String, Action>,
}

impl Policy {
    /// Replaces nothing.
    #[must_use]
    pub fn none() -> Self {
        Policy::default()
    }

    /// Hashes users, machines, command lines and SIDs.
    #[must_use]
    pub fn usual() -> Self {
        use Category::{CommandLines, Machines, Sids, Users};
        [Users, Machines, CommandLines, Sids]
            .into_iter()
            .fold(Policy::none(), |policy, category| {
                policy.with(category, Action::Hash)
            })
    }

    /// As [`Policy::usual`], and hashes directories and IP addresses; drops command lines.
    #[must_use]
    pub fn strict() -> Self {
        use Category::{CommandLines, Ips, Paths};
        Policy::usual()
            .with(CommandLines, Action::Drop)
            .with(Paths, Action::Hash)
            .with(Ips, Action::Hash)
    }

    /// Sets the action for a category.
    #[must_use]
    pub fn with(mut self, category: Category, action: Action) -> Self {
        if let Some(slot) = self.categories.get_mut(category as usize) {
            *slot = action;
        }
        self
    }

    /// Sets the action for the fields of this name; case does not matter.
    #[must_use]
    pub fn with_field(mut self, name: &str, action: Action) -> Self {
        self.fields.insert(name.to_lowercase(), action);
        self
    }

    /// The action for a category.
    #[must_use]
    pub fn of(&self, category: Category) -> Action {
        self.categories
            .get(category as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The action for a name of a user or machine, wherever it occurs.
    pub(super) fn of_names(&self) -> Action {
        match self.of(Category::Users) {
            Action::Keep => self.of(Category::Machines),
            users => users,
        }
    }

    /// The action for a field by its name.
    pub(super) fn named(&self, field: &Field) -> Option<Action> {
        if self.fields.is_empty() {
            return None;
        }
        self.fields.get(&field.name.to_lowercase()).copied()
    }
}

/// The category of a field, by its name and type.
pub(super) fn category(field: &Field) -> Option<Category> {
    let name = field.name.to_lowercase();
    match field.in_type()? {
        InType::Sid | InType::WbemSid => Some(Category::Sids),
        InType::Pointer => Some(Category::Addresses),
        InType::UInt64 | InType::HexInt64 if is_address(&name) => Some(Category::Addresses),
        InType::Utf16 | InType::Ansi => match name.as_str() {
            "cmdline" | "arguments" => Some(Category::CommandLines),
            name if name.ends_with("commandline") => Some(Category::CommandLines),
            "username" | "user" | "accountname" | "subjectusername" | "targetusername"
            | "callername" | "loginname" | "owner" => Some(Category::Users),
            "computername" | "machinename" | "hostname" | "domainname" | "domain"
            | "servername" | "computer" | "clientname" | "workstationname" | "dnshostname" => {
                Some(Category::Machines)
            }
            "imagename" => Some(Category::Paths),
            name if name.ends_with("filename") || name.ends_with("path") => Some(Category::Paths),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a 64-bit integer of this name contains an address. The CLR's ids of modules, methods and
/// assemblies are addresses.
fn is_address(name: &str) -> bool {
    const ENDS: [&str; 5] = ["address", "base", "methodid", "moduleid", "assemblyid"];
    ENDS.iter().any(|end| name.ends_with(end))
}
