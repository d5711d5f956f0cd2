//! The parts of an event besides the numbers of its header and its payload: extended items, and
//! the instance of a class.

use etl_format::Guid;
use etl_format::constants::RecordKind;
use etl_format::read::{ExtendedItem, Header, Record};

/// An instance of a class, and its parent.
pub(crate) struct Instance {
    pub(crate) id: u32,
    pub(crate) parent_id: u32,
    pub(crate) parent_class: Guid,
}

impl Instance {
    /// The instance in an INSTANCE record; `None` for other kinds.
    pub(crate) fn of(record: &Record<'_>) -> Option<Self> {
        // The kind is known before the header is decoded, and INSTANCE records are rare.
        if !matches!(
            record.kind(),
            RecordKind::INSTANCE32 | RecordKind::INSTANCE64
        ) {
            return None;
        }
        let Header::Instance(header) = record.header() else {
            return None;
        };
        Some(Instance {
            id: header.instance_id,
            parent_id: header.parent_instance_id,
            parent_class: header.parent_class,
        })
    }
}

/// The extended items of a record, the first one of each kind.
#[derive(Default)]
pub(crate) struct Items<'a> {
    pub(crate) related_activity: Option<Guid>,
    pub(crate) sid: Option<&'a [u8]>,
    pub(crate) terminal_session: Option<u32>,
    pub(crate) instance: Option<Instance>,
    pub(crate) process_start_key: Option<u64>,
    pub(crate) has_stack: bool,
    /// Joins the halves of a stack.
    pub(crate) stack_match_id: Option<u64>,
    pub(crate) stack_key: Option<u64>,
}

impl<'a> Items<'a> {
    #[inline]
    pub(crate) fn of(record: &Record<'a>) -> Self {
        let mut items = Items {
            instance: Instance::of(record),
            ..Items::default()
        };
        for item in record.extended() {
            items.add(item);
        }
        items
    }

    fn add(&mut self, item: ExtendedItem<'a>) {
        fn set<T>(to: &mut Option<T>, value: T) {
            to.get_or_insert(value);
        }
        match item {
            ExtendedItem::RelatedActivity(id) => set(&mut self.related_activity, id),
            ExtendedItem::Sid(sid) => set(&mut self.sid, sid),
            ExtendedItem::TerminalSession(id) => set(&mut self.terminal_session, id),
            ExtendedItem::Instance {
                id,
                parent_id,
                parent,
            } => {
                set(
                    &mut self.instance,
                    Instance {
                        id,
                        parent_id,
                        parent_class: parent,
                    },
                );
            }
            ExtendedItem::ProcessStartKey(key) => set(&mut self.process_start_key, key),
            ExtendedItem::Stack(stack) => {
                self.has_stack = true;
                self.add_match_id(stack.match_id);
            }
            ExtendedItem::StackKey { match_id, key, .. } => {
                set(&mut self.stack_key, key);
                self.add_match_id(match_id);
            }
            _ => {}
        }
    }

    /// A whole stack has the id 0: it has no other half to join.
    fn add_match_id(&mut self, id: u64) {
        if id != 0 {
            self.stack_match_id.get_or_insert(id);
        }
    }
}
