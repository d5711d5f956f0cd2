//! What the rows of one event have in common, prepared once.

use etl_schema::render::hexadecimal;

use super::members::{key, number, quoted, text_member};
use crate::columns::Column;
use crate::event::{CsvValues, Event, Head, JsonMembers};

/// The members of JSON that all rows of an event have in common.
#[inline]
pub(super) fn json_members<'a>(event: &Event<'a>) -> &'a JsonMembers {
    let head = event.head;
    head.json
        .get_or_init(|| Box::new(make_members(head, &event.kind().to_string())))
}

#[cold]
fn make_members(head: &Head, kind: &str) -> JsonMembers {
    let mut members = JsonMembers::default();
    key(&mut members.kind, Column::Kind);
    quoted(&mut members.kind, |out| out.extend(kind.as_bytes()));
    let header = &head.header;
    let out = &mut members.numbers;
    if let Some(guid) = head.provider {
        key(out, Column::ProviderGuid);
        quoted(out, |out| out.extend(guid.to_ascii()));
    }
    text_member(
        out,
        Column::Provider,
        head.provider_name.unwrap_or_default(),
    );
    members.provider = out.len();
    if let Some(hook) = header.hook {
        key(out, Column::Hook);
        quoted(out, |out| out.extend(format!("{hook:#06x}").as_bytes()));
    }
    number(out, Column::Id, header.id);
    number(out, Column::Version, header.version);
    number(out, Column::Opcode, header.opcode);
    text_member(out, Column::OpcodeName, &head.opcode_name);
    number(out, Column::Task, header.task);
    text_member(out, Column::TaskName, &head.task_name);
    number(out, Column::Level, header.level);
    text_member(out, Column::LevelName, &head.level_name);
    if let Some(keyword) = header.keyword {
        key(out, Column::Keyword);
        quoted(out, |out| hexadecimal(out, keyword));
    }
    text_member(out, Column::ChannelName, &head.channel_name);
    text_member(&mut members.event, Column::Event, &head.event_name);
    members
}

/// Whether all rows of an event have the same value in a column. Only a provider whose name the
/// trace defines may get it later.
pub(super) const fn is_shared(column: Column) -> bool {
    use Column::{
        Channel, ChannelName, Event, Hook, Id, Keyword, Keywords, Kind, Level, LevelName, Opcode,
        OpcodeName, Provider, ProviderGuid, Task, TaskName, Version,
    };
    matches!(
        column,
        Kind | ProviderGuid
            | Provider
            | Hook
            | Id
            | Version
            | Opcode
            | Task
            | Level
            | Keyword
            | Event
            | Channel
            | ChannelName
            | OpcodeName
            | TaskName
            | LevelName
            | Keywords
    )
}

/// The values of CSV that all rows of an event have in common; `write` writes the value of a
/// column.
pub(super) fn csv_values(mut write: impl FnMut(&mut Vec<u8>, Column)) -> CsvValues {
    let mut values = CsvValues::default();
    for column in Column::ALL {
        let start = values.text.len();
        if !is_shared(*column) {
            values.spans.push(start..start);
            continue;
        }
        write(&mut values.text, *column);
        values.spans.push(start..values.text.len());
        values.text.push(b',');
    }
    values
}
