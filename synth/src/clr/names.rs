//! Names as programmers give them, drawn.

use crate::model::CodeKind;
use crate::rng::Rng;

const NOUNS: [&str; 24] = [
    "Order", "Invoice", "Cache", "Session", "Token", "Stream", "Buffer", "Parser", "Queue",
    "Index", "Customer", "Request", "Response", "Writer", "Reader", "Handler", "Provider",
    "Factory", "Context", "Message", "Channel", "Pool", "Rule", "Report",
];
const VERBS: [&str; 20] = [
    "Get", "Set", "Try", "Open", "Close", "Read", "Write", "Parse", "Format", "Find", "Add",
    "Remove", "Update", "Begin", "End", "Send", "Receive", "Build", "Check", "Copy",
];
const SIGNATURES: [&str; 8] = [
    "void  ()",
    "instance void  ()",
    "instance bool  (class System.String)",
    "instance int32  (int32,int32)",
    "class System.String  (class System.String,int32)",
    "instance class System.Threading.Tasks.Task  (class System.Threading.CancellationToken)",
    "instance void  (unsigned int8[],int32,int32)",
    "bool  (int64,value class System.DateTime&)",
];

fn pick<'a>(words: &[&'a str], rng: &mut Rng) -> &'a str {
    words
        .get(rng.pick(words.len()))
        .copied()
        .unwrap_or_default()
}

/// A signature.
pub(super) fn signature(rng: &mut Rng) -> String {
    pick(&SIGNATURES, rng).to_owned()
}

/// Namespace and type, name, and signature of the `number`-th method below a root namespace.
pub(super) fn method(
    root: &str,
    kind: CodeKind,
    number: u32,
    rng: &mut Rng,
) -> (String, String, String) {
    let signature = signature(rng);
    match kind {
        CodeKind::Dynamic => (
            "dynamicClass".to_owned(),
            format!("lambda_method{number}"),
            signature,
        ),
        CodeKind::Helper => (String::new(), format!("JIT_Helper{number}"), String::new()),
        _ => {
            // Types have about a dozen methods.
            let noun = pick(&NOUNS, rng);
            let class = format!("{root}.{}{noun}{}", pick(&NOUNS, rng), number / 12);
            let class = if kind == CodeKind::Generic {
                format!("{class}`1[System.__Canon]")
            } else {
                class
            };
            let name = format!("{}{}", pick(&VERBS, rng), pick(&NOUNS, rng));
            (class, name, signature)
        }
    }
}
