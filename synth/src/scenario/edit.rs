//! `edit FILE { ... }`: edits of a finished file.

use super::args::Args;
use crate::model::{
    Amount, Changes, Edit, EditPlan, EditStep, FieldValue, HeaderField, NamedValue, RecordAction,
    RecordEdit, RecordSelector, Side,
};

/// `edit "clr.etl" { delete "DCEndComplete" nth=-1 }`
pub(super) fn edit(mut args: Args<'_, '_>) -> Option<EditPlan> {
    let file = args.next("a file");
    let location = Some(args.location());
    let mut edits = Vec::new();
    args.children(&mut |args| {
        let location = Some(args.location());
        edits.extend(one(args).map(|edit| EditStep { edit, location }));
    });
    Some(EditPlan {
        file: file?,
        edits,
        location,
    })
}

fn one(mut args: Args<'_, '_>) -> Option<Edit> {
    let name = args.name();
    let edit = match name {
        "header" => {
            let choices = HeaderField::OF_FILE.map(|field| (field.name, field));
            let field = args.next_choice("a field of the header", &choices)?;
            Edit::Header {
                field,
                amount: amount(&mut args, field.width)?,
            }
        }
        "buffer" => {
            let nth = nth(&mut args)?;
            let choices = HeaderField::OF_BUFFER.map(|field| (field.name, field));
            let field = args.next_choice("a field of its header", &choices)?;
            Edit::Buffer {
                nth,
                field,
                amount: amount(&mut args, field.width)?,
            }
        }
        "damage" => Edit::Damage(nth(&mut args)?),
        "copy" | "alter" => {
            let times = if name == "copy" {
                args.get("times").unwrap_or(1)
            } else {
                1
            };
            let mut changes = Box::new(changes(&mut args));
            let select = select(&mut args)?;
            args.children(&mut |args| changes.fields.extend(field(args)));
            let action = match name {
                "copy" => RecordAction::Copy(times, changes),
                _ => RecordAction::Alter(changes),
            };
            return Some(Edit::Records(Box::new(RecordEdit { select, action })));
        }
        "delete" | "swap" | "disorder" | "move" => {
            let action = match name {
                "delete" => RecordAction::Delete,
                "swap" => RecordAction::Swap,
                "disorder" => RecordAction::Disorder,
                _ => displacement(&mut args)?,
            };
            Edit::Records(Box::new(RecordEdit {
                select: select(&mut args)?,
                action,
            }))
        }
        _ => {
            let known = "delete, copy, alter, move, swap, disorder, header, buffer, damage";
            args.unknown("an edit", known);
            return None;
        }
    };
    args.finish();
    Some(edit)
}

/// The number of a buffer.
fn nth(args: &mut Args<'_, '_>) -> Option<i64> {
    let nth = args.next("the number of a buffer")?;
    counted(args, nth).then_some(nth)
}

/// Whether a number counts from 1, or backwards from -1; reports an error if it does not.
fn counted(args: &mut Args<'_, '_>, nth: i64) -> bool {
    if nth == 0 {
        let help = Some("1 is the first one, -1 the last one");
        args.error("there is no number 0", "counts from 1, or from -1", help);
    }
    nth != 0
}

/// `before="DCEndInit"` or `after="DCEndComplete" of-pid=100`.
fn displacement(args: &mut Args<'_, '_>) -> Option<RecordAction> {
    let before = args.get("before").map(|event| (event, Side::Before));
    let after = args.get("after").map(|event| (event, Side::After));
    let pid = args.get("of-pid");
    let Some((event, side)) = before.or(after) else {
        let help = Some("move \"DCEndInit\" after=\"DCEndComplete\"");
        args.error("move needs a position", "before or after is missing", help);
        return None;
    };
    Some(RecordAction::Move(
        RecordSelector {
            event,
            pid,
            ..RecordSelector::default()
        },
        side,
    ))
}

/// `set=5` or `raise=-1`, for a field of so many bytes.
fn amount(args: &mut Args<'_, '_>, width: usize) -> Option<Amount> {
    let set: Option<i64> = args.get("set");
    // A negative number is meant for a signed field.
    if set.is_some_and(|n| width < 8 && !(-1 << (8 * width - 1)..1 << (8 * width)).contains(&n)) {
        args.error(
            "set does not fit into the field",
            format!("it has {width} bytes"),
            None,
        );
    }
    let amount = set
        .map(Amount::Set)
        .or(args.get("raise").map(Amount::Raise));
    if amount.is_none() {
        args.error(
            "no amount",
            "set or raise is missing",
            Some("set=5, or raise=-1"),
        );
    }
    amount
}

/// `"MethodLoad" pid=100 nth=-1 with="MethodID" is=5`
fn select(args: &mut Args<'_, '_>) -> Option<RecordSelector> {
    let event = args.next("an event")?;
    Some(narrowed(args, event))
}

/// The properties that select among the records of an event.
fn narrowed(args: &mut Args<'_, '_>, event: String) -> RecordSelector {
    let pid = args.get("pid");
    let nth = args.get("nth");
    let provider = args.get("provider");
    let nth = nth.filter(|nth| counted(args, *nth));
    let field = args.get("with");
    let value = args.get("is");
    if field.is_some() != value.is_some() {
        let help = Some("with=\"MethodID\" is=5");
        args.error("with and is go together", "one is missing", help);
    }
    let with = match (field, value) {
        (Some(name), Some(number)) => Some(NamedValue {
            name,
            value: FieldValue::Number(number),
        }),
        _ => None,
    };
    RecordSelector {
        event,
        pid,
        provider,
        nth,
        with,
    }
}

fn changes(args: &mut Args<'_, '_>) -> Changes {
    Changes {
        pid: args.get("set-pid"),
        tid: args.get("set-tid"),
        processor: args.get("set-processor"),
        id: args.get("set-id"),
        version: args.get("set-version"),
        level: args.get("set-level"),
        opcode: args.get("set-opcode"),
        keyword: args.get("set-keyword"),
        provider: args.get("set-provider"),
        shift: args.get("shift").unwrap_or(0),
        cut: args.get("cut").unwrap_or(0),
        keep: args.get("keep"),
        hook: args.get("set-hook"),
        grow: args.get("grow").unwrap_or(0),
        fields: Vec::new(),
    }
}

/// `MethodID 5` or `MethodID of="MethodLoad" take="MethodID" plus=8`.
fn field(mut args: Args<'_, '_>) -> Option<NamedValue<FieldValue>> {
    let name = args.name().to_owned();
    let value = if let Some(event) = args.get("of") {
        let record = Box::new(narrowed(&mut args, event));
        let field = args.get("take").unwrap_or_else(|| name.clone());
        Some(FieldValue::Of {
            record,
            field,
            plus: args.get("plus").unwrap_or(0),
        })
    } else {
        args.next("a value")
    };
    args.finish();
    Some(NamedValue {
        name,
        value: value?,
    })
}
