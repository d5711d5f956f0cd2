//! Operations that have not ended. Losses of records drop those whose ends may be missing.

use std::hash::Hash;

use foldhash::HashMap;

use crate::loss::Loss;

/// The records that may have the end of an operation. A loss of such records may hide the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    session: usize,
    processor: Option<u16>,
}

impl Scope {
    /// The records of a session: its [number](crate::EventRef::session) in the recording.
    #[must_use]
    pub fn session(session: usize) -> Self {
        Scope {
            session,
            processor: None,
        }
    }

    /// The records that a loss may hide.
    pub(crate) fn of_loss(loss: &Loss) -> Self {
        Scope {
            session: loss.session,
            processor: loss.processor,
        }
    }

    /// The records of one processor of a session.
    #[must_use]
    pub fn processor(session: usize, processor: u16) -> Self {
        Scope {
            session,
            processor: Some(processor),
        }
    }
}

/// Operations that began and have not ended, by key.
///
/// A loss drops the operations whose ends may be missing. It does not visit them: a trace may have
/// as many losses as operations. Each operation has a [`Scope`], and a loss ends scopes. An
/// operation of an ended scope is dropped when its key is used again, or with others once most
/// operations are of ended scopes.
///
/// ```
/// use etl_analysis::{OpenOperations, Scope};
///
/// let mut requests = OpenOperations::default();
/// // A request of 4096 bytes begins in the first session.
/// requests.begin("request 1", Scope::session(0), 4096);
/// assert_eq!(requests.len(), 1);
/// assert_eq!(requests.end(&"request 1"), Some(4096));
/// assert_eq!(requests.end(&"request 1"), None);
/// ```
#[derive(Clone, Debug)]
pub struct OpenOperations<K, V> {
    all: HashMap<K, Open<V>>,
    /// How many of them are not given up.
    count: usize,
    scopes: Scopes,
}

/// An operation that began.
#[derive(Clone, Debug)]
struct Open<V> {
    /// The number of the scope in which it began.
    scope: usize,
    value: V,
}

impl<K, V> Default for OpenOperations<K, V> {
    fn default() -> Self {
        OpenOperations {
            all: HashMap::default(),
            count: 0,
            scopes: Scopes::default(),
        }
    }
}

impl<K: Hash + Eq, V> OpenOperations<K, V> {
    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The open operation with a key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        let open = self.all.get(key)?;
        self.scopes.is_open(open.scope).then_some(&open.value)
    }

    /// As [`OpenOperations::get`], to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let open = self.all.get_mut(key)?;
        self.scopes.is_open(open.scope).then_some(&mut open.value)
    }

    /// An operation begins, and ends with a record of `scope`. Returns the operation that it
    /// replaces.
    pub fn begin(&mut self, key: K, scope: Scope, value: V) -> Option<V> {
        let scope = self.scopes.begin(scope);
        self.count += 1;
        let before = self.all.insert(key, Open { scope, value });
        self.still_open(before)
    }

    /// An operation ends.
    pub fn end(&mut self, key: &K) -> Option<V> {
        let before = self.all.remove(key);
        self.still_open(before)
    }

    /// An operation ends with a record of another scope from now on.
    pub fn change_scope(&mut self, key: K, scope: Scope) {
        if let Some(value) = self.end(&key) {
            self.begin(key, scope, value);
        }
    }

    /// An operation that was taken out, unless it had been given up.
    fn still_open(&mut self, before: Option<Open<V>>) -> Option<V> {
        let Open { scope, value } = before?;
        if !self.scopes.end(scope) {
            return None;
        }
        self.count -= 1;
        Some(value)
    }

    /// Drops the operations whose ends may be missing by a loss. Returns how many.
    pub fn give_up(&mut self, loss: &Loss) -> usize {
        let given_up = self.scopes.close(loss);
        self.count -= given_up;
        // To visit all operations costs no more than to begin the dropped ones.
        if self.all.len() > 2 * self.count {
            let scopes = &self.scopes;
            self.all.retain(|_, open| scopes.is_open(open.scope));
            self.all.shrink_to(2 * self.count);
        }
        given_up
    }

    /// Takes out all open operations, in no order.
    pub fn take(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let OpenOperations { all, scopes, .. } = std::mem::take(self);
        let open = all
            .into_iter()
            .filter(move |(_, open)| scopes.is_open(open.scope));
        open.map(|(key, open)| (key, open.value))
    }

    /// All open operations, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let open = self
            .all
            .iter()
            .filter(|(_, open)| self.scopes.is_open(open.scope));
        open.map(|(key, open)| (key, &open.value))
    }
}

/// The scopes of operations, by number.
#[derive(Clone, Debug, Default)]
struct Scopes {
    /// The numbers of the scopes that no loss has ended, by session and place. The scope of the
    /// whole session comes before the scopes of processors.
    current: Vec<Vec<Option<usize>>>,
    /// How many operations are open in each; `None` once a loss ended it.
    counts: Vec<Option<usize>>,
}

impl Scopes {
    /// An operation begins. Returns the number of its scope.
    fn begin(&mut self, scope: Scope) -> usize {
        let Scope { session, processor } = scope;
        let next = self.counts.len();
        let place = place(processor);
        if self.current.len() <= session {
            self.current.resize(session + 1, Vec::new());
        }
        let Some(of_session) = self.current.get_mut(session) else {
            return next;
        };
        if of_session.len() <= place {
            of_session.resize(place + 1, None);
        }
        let Some(current) = of_session.get_mut(place) else {
            return next;
        };
        let scope = *current.get_or_insert(next);
        match self.counts.get_mut(scope) {
            Some(count) => *count = count.map(|count| count + 1),
            None => self.counts.push(Some(1)),
        }
        scope
    }

    /// An operation ends. Returns whether its scope has not ended before.
    fn end(&mut self, scope: usize) -> bool {
        let count = self.counts.get_mut(scope).and_then(Option::as_mut);
        count.map(|count| *count -= 1).is_some()
    }

    fn is_open(&self, scope: usize) -> bool {
        self.counts.get(scope).is_some_and(Option::is_some)
    }

    /// Ends the scopes in which a loss may have happened. Returns how many operations were open in
    /// them.
    fn close(&mut self, loss: &Loss) -> usize {
        let Some(of_session) = self.current.get_mut(loss.session) else {
            return 0;
        };
        let mut closed = Vec::new();
        if loss.processor.is_none() {
            closed.append(of_session);
        } else {
            for place in [place(None), place(loss.processor)] {
                closed.extend(of_session.get_mut(place).map(Option::take));
            }
        }
        let mut given_up = 0;
        for scope in closed.into_iter().flatten() {
            let count = self.counts.get_mut(scope).and_then(Option::take);
            given_up += count.unwrap_or(0);
        }
        given_up
    }
}

/// The place of a scope in its session.
fn place(processor: Option<u16>) -> usize {
    processor.map_or(0, |processor| usize::from(processor) + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::loss::LossKind;

    fn loss(session: usize, processor: Option<u16>) -> Loss {
        Loss {
            from: None,
            to: None,
            processor,
            what: LossKind::BuffersLost,
            source: session,
            session,
        }
    }

    /// A step: what happens, key, session, and processor.
    type Event = (u8, u8, usize, Option<u16>);

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let processor = prop::option::of(0..3u16);
        prop::collection::vec((0..6u8, 0..12u8, 0..3usize, processor), 0..200)
    }

    proptest! {
        /// A map that every loss visits, as the simple implementation.
        #[test]
        fn losses_give_up_the_operations_that_they_are_of(events in events()) {
            let mut open: OpenOperations<u8, usize> = OpenOperations::default();
            let mut naive: HashMap<u8, (usize, Option<u16>, usize)> = HashMap::default();
            for (number, (what, key, session, processor)) in events.into_iter().enumerate() {
                match what {
                    0..=2 => {
                        let before = naive.insert(key, (session, processor, number));
                        let replaced = open.begin(key, Scope { session, processor }, number);
                        prop_assert_eq!(replaced, before.map(|before| before.2));
                    }
                    3 | 4 => {
                        prop_assert_eq!(open.end(&key), naive.remove(&key).map(|of| of.2));
                    }
                    _ => {
                        let loss = loss(session, processor);
                        let before = naive.len();
                        naive.retain(|_, (session, of, _)| !loss.is_of(*session, *of));
                        prop_assert_eq!(open.give_up(&loss), before - naive.len());
                    }
                }
                prop_assert_eq!(open.len(), naive.len());
                prop_assert_eq!(open.get(&key), naive.get(&key).map(|of| &of.2));
                let mut all: Vec<_> = open.iter().map(|(&key, &number)| (key, number)).collect();
                let mut expected: Vec<_> = naive.iter().map(|(&key, of)| (key, of.2)).collect();
                all.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(&all, &expected);
                let mut taken: Vec<_> = open.clone().take().collect();
                taken.sort_unstable();
                prop_assert_eq!(&taken, &expected);
            }
        }
    }

    #[test]
    fn many_losses_visit_each_operation_a_few_times() {
        const OPEN: u32 = 1_000;
        const LOSSES: u32 = 100_000;
        let mut open: OpenOperations<u32, ()> = OpenOperations::default();
        for key in 0..OPEN {
            open.begin(key, Scope::session(0), ());
        }
        let mut visited = 0;
        let mut most = 0;
        for key in OPEN..OPEN + LOSSES {
            open.begin(key, Scope::session(1), ());
            let before = open.all.len();
            assert_eq!(open.give_up(&loss(1, None)), 1);
            // Operations that were given up before are dropped only if all are visited.
            visited += if open.all.len() < before { before } else { 0 };
            most = most.max(before);
        }
        assert_eq!(open.len(), OPEN as usize);
        assert!(visited < 4 * LOSSES as usize, "{visited}");
        // Their memory is not kept either.
        assert!(most < 4 * OPEN as usize, "{most}");
    }
}
