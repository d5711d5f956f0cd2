//! `edit FILE { ... }`: changes to a finished file.

use kdl::KdlNode;

use super::args::{Args, unknown};
use super::reader::Reader;
use crate::model::{
    Amount, BufferField, Changes, Edit, EditPlan, FieldValue, HeaderField, RecordAction,
    RecordEdit, RecordSelector, Side,
};

const HEADER_FIELDS: [(&str, HeaderField); 8] = [
    ("build", HeaderField::Build),
    ("processors", HeaderField::Processors),
    ("end-time", HeaderField::EndTime),
    ("buffers", HeaderField::Buffers),
    ("events-lost", HeaderField::EventsLost),
    ("boot-time", HeaderField::BootTime),
    ("start-time", HeaderField::StartTime),
    ("buffers-lost", HeaderField::BuffersLost),
];

const BUFFER_FIELDS: [(&str, BufferField); 2] =
    [("sequence", BufferField::Sequence), ("processor", BufferField::Processor)];

/// `edit "clr.etl" { delete "DCEndComplete" nth=-1 }`
pub(super) fn edit(reader: &mut Reader<'_>, mut args: Args<'_>) -> Option<EditPlan> {
    let node = args.node;
    let file = args.text(reader, "a file");
    let location = Some(reader.location(args.span()));
    args.finish(reader);
    let mut edits = Vec::new();
    reader.below(node, &mut |reader, node| edits.extend(one(reader, node)));
    Some(EditPlan { file: file?, edits, location })
}

fn one(reader: &mut Reader<'_>, node: &KdlNode) -> Option<Edit> {
    let mut args = Args::new(node);
    let action = match args.name() {
        "delete" => {
            args.leaf();
            RecordAction::Delete
        }
        "swap" => {
            args.leaf();
            RecordAction::Swap
        }
        "disorder" => {
            args.leaf();
            RecordAction::Disorder
        }
        "copy" => {
            let times = args.opt_small(reader, "times").unwrap_or(1);
            RecordAction::Copy(times, Box::new(changes(reader, &mut args)?))
        }
        "alter" => RecordAction::Alter(Box::new(changes(reader, &mut args)?)),
        "move" => {
            args.leaf();
            let before = args.opt_text(reader, "before").map(|event| (event, Side::Before));
            let after = args.opt_text(reader, "after").map(|event| (event, Side::After));
            let pid = args.opt_small(reader, "of-pid");
            let Some((event, side)) = before.or(after) else {
                let help = Some("move \"DCEndInit\" after=\"DCEndComplete\"".to_owned());
                reader.error(
                    args.span(),
                    "move needs a position",
                    "before or after is missing",
                    help,
                );
                return None;
            };
            RecordAction::Move(RecordSelector { event, pid, ..RecordSelector::default() }, side)
        }
        "header" => {
            args.leaf();
            let field = args.choice(reader, "a field of the header", &HEADER_FIELDS)?;
            let amount = amount(reader, &mut args)?;
            args.finish(reader);
            return Some(Edit::Header(field, amount));
        }
        "buffer" => {
            args.leaf();
            let nth = args.signed(reader, "its place, from 1 or from -1 on")?;
            let field = args.choice(reader, "a field of its header", &BUFFER_FIELDS)?;
            let amount = amount(reader, &mut args)?;
            args.finish(reader);
            return Some(Edit::Buffer(nth, field, amount));
        }
        "damage" => {
            args.leaf();
            let nth = args.signed(reader, "a buffer's place, from 1 or from -1 on")?;
            args.finish(reader);
            return Some(Edit::Damage(nth));
        }
        _ => {
            let known = "delete, copy, alter, move, swap, disorder, header, buffer, damage";
            unknown(reader, node, "an edit", known);
            return None;
        }
    };
    let select = select(reader, &mut args)?;
    args.finish(reader);
    Some(Edit::Records(Box::new(RecordEdit { select, action })))
}

/// `set=5` or `raise=-1`.
fn amount(reader: &mut Reader<'_>, args: &mut Args<'_>) -> Option<Amount> {
    let set = args.opt_signed(reader, "set").map(Amount::Set);
    let amount = set.or(args.opt_signed(reader, "raise").map(Amount::Raise));
    if amount.is_none() {
        let help = Some("set=5, or raise=-1".to_owned());
        reader.error(args.span(), "no amount", "set or raise is missing", help);
    }
    amount
}

/// `"MethodLoad" pid=100 nth=-1 with="MethodID" is=5`
fn select(reader: &mut Reader<'_>, args: &mut Args<'_>) -> Option<RecordSelector> {
    let event = args.text(reader, "an event")?;
    Some(narrowed(reader, args, event))
}

/// The properties after the name of an event that select some of its records.
fn narrowed(reader: &mut Reader<'_>, args: &mut Args<'_>, event: String) -> RecordSelector {
    let (pid, nth) = (args.opt_small(reader, "pid"), args.opt_signed(reader, "nth"));
    let provider = args.opt_provider(reader, "provider");
    let (field, value) = (args.opt_text(reader, "with"), args.opt_number(reader, "is"));
    if field.is_some() != value.is_some() {
        let help = Some("with=\"MethodID\" is=5".to_owned());
        reader.error(args.span(), "with and is go together", "one is missing", help);
    }
    let with = field.zip(value).map(|(field, value)| (field, FieldValue::Number(value)));
    RecordSelector { event, pid, provider, nth, with }
}

fn changes(reader: &mut Reader<'_>, args: &mut Args<'_>) -> Option<Changes> {
    let mut changes = Changes {
        pid: args.opt_small(reader, "set-pid"),
        tid: args.opt_small(reader, "set-tid"),
        processor: args.opt_small(reader, "set-processor"),
        id: args.opt_small(reader, "set-id"),
        version: args.opt_small(reader, "set-version"),
        level: args.opt_small(reader, "set-level"),
        keyword: args.opt_number(reader, "set-keyword"),
        provider: args.opt_provider(reader, "set-provider"),
        shift: args.opt_signed(reader, "shift").unwrap_or(0),
        cut: args.opt_small(reader, "cut").unwrap_or(0),
        keep: args.opt_small(reader, "keep"),
        hook: args.opt_small(reader, "set-hook"),
        grow: args.opt_small(reader, "grow").unwrap_or(0),
        fields: Vec::new(),
    };
    let node = args.node;
    reader.below(node, &mut |reader, node| {
        let mut args = Args::new(node);
        args.leaf();
        let field = args.name().to_owned();
        if let Some(event) = args.opt_text(reader, "of") {
            let from = narrowed(reader, &mut args, event);
            let take = args.opt_text(reader, "take").unwrap_or_else(|| field.clone());
            let plus = args.opt_number(reader, "plus").unwrap_or(0);
            changes.fields.push((field, FieldValue::Of(Box::new(from), take, plus)));
        } else if let Some(given) = args.given(reader) {
            changes.fields.push((field, given));
        }
        args.finish(reader);
    });
    Some(changes)
}
