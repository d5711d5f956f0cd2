//! The macro for structs with private fields and a method to read each.

/// Declares a struct. Other crates read the fields by methods of the same names: fields under
/// `copy` by value, fields under `borrow` by reference. Fields under `own` have no method.
macro_rules! with_accessors {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            copy { $($(#[$copy_doc:meta])* $copy:ident: $copy_type:ty,)* }
            borrow { $($(#[$borrow_doc:meta])* $borrow:ident: $borrow_type:ty => $target:ty,)* }
            own { $($(#[$own_doc:meta])* $own:ident: $own_type:ty,)* }
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $(pub(crate) $copy: $copy_type,)*
            $(pub(crate) $borrow: $borrow_type,)*
            $($(#[$own_doc])* pub(crate) $own: $own_type,)*
        }

        impl $name {
            $($(#[$copy_doc])* #[must_use] pub fn $copy(&self) -> $copy_type { self.$copy })*
            $($(#[$borrow_doc])* #[must_use] pub fn $borrow(&self) -> &$target { &self.$borrow })*
        }
    };
}
