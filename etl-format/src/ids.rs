//! Ids of processes and threads.

use std::fmt;

use crate::constants::UNKNOWN_ID;

/// Defines the type of an id. Both types have the same functions, and cannot be confused.
macro_rules! id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        pub struct $name(u32);

        impl $name {
            /// The id that Windows writes if the id is unknown: all bits are set.
            pub const UNKNOWN: Self = Self(UNKNOWN_ID);

            /// An id as records store it.
            #[must_use]
            pub const fn new(id: u32) -> Self {
                Self(id)
            }

            /// The id as records store it.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Whether this is not [`Self::UNKNOWN`].
            #[must_use]
            pub const fn is_known(self) -> bool {
                self.0 != UNKNOWN_ID
            }
        }

        impl From<u32> for $name {
            fn from(id: u32) -> Self {
                Self(id)
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl PartialEq<u32> for $name {
            fn eq(&self, id: &u32) -> bool {
                self.0 == *id
            }
        }

        /// Prints the decimal number.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// The id of a process. Windows uses it again for a later process.
    ///
    /// ```
    /// use etl_format::ProcessId;
    ///
    /// let system = ProcessId::new(4);
    /// assert_eq!(system, 4);
    /// assert_eq!(system.to_string(), "4");
    /// assert!(system.is_known() && !ProcessId::UNKNOWN.is_known());
    /// ```
    ProcessId
}

id! {
    /// The id of a thread. Windows uses it again for a later thread.
    ///
    /// ```
    /// use etl_format::ThreadId;
    ///
    /// let thread = ThreadId::new(1_012);
    /// assert_eq!(thread.get(), 1_012);
    /// assert!(thread.is_known() && !ThreadId::UNKNOWN.is_known());
    /// ```
    ThreadId
}
