//! What records of every kind say about themselves, in one shape.

use etl_format::Guid;
use etl_format::read::{Header, Record};

/// What a line says, taken from whatever kind of header the record has.
#[derive(Default)]
pub(super) struct Facts {
    pub hook: Option<u16>,
    pub id: Option<u16>,
    pub version: Option<u16>,
    pub opcode: Option<u8>,
    pub task: Option<u16>,
    pub level: Option<u8>,
    pub keyword: Option<u64>,
    pub activity: Option<Guid>,
    pub channel: Option<u8>,
}

impl Facts {
    pub fn of(record: &Record<'_>) -> Self {
        let mut facts = Facts::default();
        match record.header() {
            Header::Event(h) => {
                let d = h.descriptor;
                facts.id = Some(d.id);
                facts.version = Some(d.version.into());
                facts.opcode = Some(d.opcode);
                facts.task = Some(d.task);
                facts.level = Some(d.level);
                facts.keyword = Some(d.keyword);
                facts.channel = Some(d.channel);
                facts.activity = Some(h.activity).filter(|a| !a.is_zero());
            }
            Header::Full(h) => facts.classic(h.opcode, h.version, h.level),
            Header::Instance(h) => facts.classic(h.full.opcode, h.full.version, h.full.level),
            Header::Message(h) => facts.id = Some(h.number),
            Header::System(h) => facts.kernel(h.hook, h.version & 0xff),
            Header::PerfInfo(h) => facts.kernel(h.hook, h.version().into()),
            _ => {}
        }
        facts
    }

    fn classic(&mut self, opcode: u8, version: u16, level: u8) {
        (self.opcode, self.version, self.level) = (Some(opcode), Some(version), Some(level));
    }

    fn kernel(&mut self, hook: u16, version: u16) {
        (self.hook, self.opcode, self.version) = (Some(hook), Some(hook as u8), Some(version));
    }
}
