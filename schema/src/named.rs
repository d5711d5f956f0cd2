//! Enumerations whose values have names in command lines and reports.

/// Defines an enumeration with the list and the names of its values; they serialize as their names.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub enum $name {
            $($(#[$of_value])* #[serde(rename = $text)] $value,)*
        }

        impl $name {
            /// All values, in the order of reports.
            pub const ALL: [$name; [$($text),*].len()] = [$($name::$value),*];

            /// The name in command lines and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$value => $text,)*
                }
            }
        }
    };
}
