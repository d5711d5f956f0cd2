//! The macro that declares several observers of one pass.

/// Declares a struct of observers. It is an [`Observer`](crate::Observer) itself: each of its
/// fields sees the whole recording in one pass.
///
/// ```
/// use etl_analysis::behavior::collections::Collections;
/// use etl_analysis::behavior::io::Io;
/// use etl_analysis::{Analysis, Recording, observers};
///
/// observers! {
///     /// What processes collected, read and wrote.
///     #[derive(Default)]
///     struct Summary {
///         collections: Collections,
///         io: Io,
///     }
/// }
///
/// fn summary(trace: &[u8]) -> etl_analysis::Result<Summary> {
///     let mut recording = Recording::open([(trace, "trace.etl")])?;
///     let mut summary = Summary::default();
///     Analysis::new().run(&mut recording, &mut summary)?;
///     println!("{} collections", summary.collections.list().len());
///     Ok(summary)
/// }
/// ```
#[macro_export]
macro_rules! observers {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $observer:ty),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $observer,)+
        }

        impl $crate::Observer for $name {
            const JOINS: $crate::Joins = $crate::Joins::Nothing
                $(.and(<$observer as $crate::Observer>::JOINS))+;

            fn record(
                &mut self,
                machine: &$crate::Machine,
                record: &$crate::Record<'_>,
                event: &$crate::EventRef,
            ) {
                $($crate::Observer::record(&mut self.$field, machine, record, event);)+
            }

            fn unselected(
                &mut self,
                machine: &$crate::Machine,
                record: &$crate::Record<'_>,
                event: &$crate::EventRef,
            ) {
                $($crate::Observer::unselected(&mut self.$field, machine, record, event);)+
            }

            fn change(
                &mut self,
                machine: &$crate::Machine,
                change: &$crate::Change,
                event: &$crate::EventRef,
            ) {
                $($crate::Observer::change(&mut self.$field, machine, change, event);)+
            }

            fn sample(&mut self, machine: &$crate::Machine, sample: &$crate::Sample<'_>) {
                $($crate::Observer::sample(&mut self.$field, machine, sample);)+
            }

            fn stack(&mut self, machine: &$crate::Machine, stack: &$crate::Stack<'_>) {
                $($crate::Observer::stack(&mut self.$field, machine, stack);)+
            }

            fn loss(&mut self, loss: &$crate::loss::Loss) {
                $($crate::Observer::loss(&mut self.$field, loss);)+
            }

            fn finish(&mut self, machine: &$crate::Machine) {
                $($crate::Observer::finish(&mut self.$field, machine);)+
            }

            fn restart(&mut self) {
                $($crate::Observer::restart(&mut self.$field);)+
            }
        }
    };
}
