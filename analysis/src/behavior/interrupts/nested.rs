//! Which calls interrupted which others on one processor.

use foldhash::HashMap;

use etl_format::Ticks;

use crate::observe::EventRef;

/// Calls of a processor that ended last. A call comes when it ends, after the calls that
/// interrupted it; few interrupt one call.
const MAX_ENDED: usize = 64;

/// A processor as a session numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::behavior) struct ProcessorKey {
    session: usize,
    processor: u16,
}

impl ProcessorKey {
    /// The processor that logged an event.
    pub fn of(event: &EventRef) -> Self {
        ProcessorKey {
            session: event.session,
            processor: event.processor,
        }
    }
}

/// A call that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::behavior) struct EndedCall {
    pub since: Ticks,
    pub until: Ticks,
}

/// The calls that ended last, by processor.
#[derive(Clone, Debug, Default)]
pub(in crate::behavior) struct EndedCalls {
    calls: HashMap<ProcessorKey, Vec<EndedCall>>,
}

impl EndedCalls {
    /// Takes the last call that began at or after a time: it interrupted the call that began then.
    /// Calls that interrupted this one were taken when it ended.
    pub fn take_inner(&mut self, processor: ProcessorKey, since: Ticks) -> Option<EndedCall> {
        let calls = self.calls.get_mut(&processor)?;
        calls.pop_if(|inner| inner.since >= since)
    }

    /// Keeps a call that ends now.
    pub fn keep(&mut self, processor: ProcessorKey, call: EndedCall) {
        let calls = self.calls.entry(processor).or_default();
        if calls.len() == MAX_ENDED {
            calls.remove(0);
        }
        calls.push(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_belong_to_the_call_that_they_interrupted() {
        const NONE: [i64; 0] = [];
        let processor = ProcessorKey {
            session: 0,
            processor: 1,
        };
        let mut ended = EndedCalls::default();
        let mut end = |since, until| {
            let call = EndedCall {
                since: Ticks::new(since),
                until: Ticks::new(until),
            };
            let mut inner = Vec::new();
            while let Some(call) = ended.take_inner(processor, call.since) {
                inner.push(call.since.get());
            }
            ended.keep(processor, call);
            inner
        };
        // A service routine before the deferred call, then two in it, one of them interrupted.
        assert_eq!(end(10, 15), NONE);
        assert_eq!(end(22, 25), NONE);
        assert_eq!(end(31, 33), NONE);
        assert_eq!(end(30, 36), [31]);
        assert_eq!(end(20, 60), [30, 22]);
        assert_eq!(end(5, 205), [20, 10]);
    }
}
