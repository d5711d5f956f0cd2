//! The attribute `needs`: see `etl-test-support`, which re-exports it.

use std::path::Path;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

#[path = "../../src/find.rs"]
mod find;

/// What a test needs, as the attribute's arguments name it.
struct Need {
    /// What is missing, if anything is.
    missing: Option<String>,
    /// The variable that demands it.
    demand: &'static str,
}

impl Need {
    fn new(name: &str, value: Option<&str>) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let (present, what, demand) = match (name, value) {
            ("traces", None) => {
                let present = find::traces_directory(&root).is_dir();
                (
                    present,
                    "the real traces (../shared/traces)".to_owned(),
                    "ETLKIT_REQUIRE_SHARED",
                )
            }
            ("trace", Some(trace)) => {
                let present = find::traces_directory(&root).join(trace).is_file();
                (
                    present,
                    format!("the real trace {trace}"),
                    "ETLKIT_REQUIRE_SHARED",
                )
            }
            ("python", None) => {
                let present = find::python_path(&root).is_file();
                let what = "the Python readers (scripts/install.sh venv)".to_owned();
                (present, what, "ETLKIT_REQUIRE_FOREIGN")
            }
            ("node", None) => {
                let present = find::program_path("node").is_some()
                    && find::node_packages_path(&root).is_dir();
                let what = "the readers in Node.js (scripts/install.sh node)".to_owned();
                (present, what, "ETLKIT_REQUIRE_NODE")
            }
            ("tshark", None) => {
                let present = find::program_path("tshark").is_some();
                (
                    present,
                    "tshark (scripts/install.sh tshark)".to_owned(),
                    "ETLKIT_REQUIRE_TSHARK",
                )
            }
            ("clang", None) => {
                let needed = ["clang", "lld-link", "llvm-symbolizer"];
                let present = needed.iter().all(|name| find::program_path(name).is_some());
                (
                    present,
                    "Clang (scripts/install.sh clang)".to_owned(),
                    "ETLKIT_REQUIRE_CLANG",
                )
            }
            ("chromium", None) => {
                let present = find::chromium_path().is_some();
                let what = "Chromium (scripts/install.sh chromium)".to_owned();
                (present, what, "ETLKIT_REQUIRE_CHROMIUM")
            }
            ("time", None) => {
                let what = "time: it runs with ETLKIT_WHOLE=1".to_owned();
                (false, what, "ETLKIT_WHOLE")
            }
            _ => {
                return Err(format!(
                    "unknown need `{name}`: expected traces, trace = \"PATH\", python, \
                     node, tshark, clang, chromium or time"
                ));
            }
        };
        Ok(Need {
            missing: (!present).then_some(what),
            demand,
        })
    }

    fn is_of_traces(&self) -> bool {
        self.demand == "ETLKIT_REQUIRE_SHARED"
    }

    fn is_demanded(&self) -> bool {
        std::env::var_os(self.demand).is_some_and(|value| value == "1")
    }
}

/// Reports the test as ignored where what it needs is missing; see the crate's documentation.
#[proc_macro_attribute]
pub fn needs(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = needs_of(arguments).and_then(|needs| {
        if has_test_attribute(item.clone()) {
            Ok(needs)
        } else {
            Err("`#[needs(..)]` stands above `#[test]`".to_owned())
        }
    });
    match expanded {
        Ok(needs) => {
            let item = if needs.iter().any(Need::is_of_traces) {
                declaring(item)
            } else {
                item
            };
            attributes(&needs)
                .parse::<TokenStream>()
                .into_iter()
                .chain([item])
                .collect()
        }
        Err(message) => format!("compile_error!({message:?});")
            .parse()
            .unwrap_or_default(),
    }
}

/// The test, which first declares that it needs real traces.
fn declaring(item: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = item.into_iter().collect();
    if let Some(TokenTree::Group(body)) = tokens.last_mut() {
        let declaration = "::etl_test_support::declare_traces();".parse::<TokenStream>();
        let content = declaration.into_iter().chain([body.stream()]).collect();
        let span = body.span();
        *body = Group::new(Delimiter::Brace, content);
        body.set_span(span);
    }
    tokens.into_iter().collect()
}

fn needs_of(arguments: TokenStream) -> Result<Vec<Need>, String> {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    tokens
        .split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
        .map(|need| match need {
            [name] => Need::new(&name.to_string(), None),
            [name, _, value] => {
                Need::new(&name.to_string(), Some(value.to_string().trim_matches('"')))
            }
            _ => Err("expected `needs(NAME)` or `needs(NAME = \"VALUE\")`".to_owned()),
        })
        .collect()
}

/// Whether one of the attributes before the function is `#[test]`.
fn has_test_attribute(item: TokenStream) -> bool {
    item.into_iter().any(|token| {
        matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket
            && group.stream().to_string() == "test")
    })
}

/// `#[ignore]` if something is missing that is not demanded. The compiler is made to notice when
/// one of the variables changes, so that the test is compiled again.
fn attributes(needs: &[Need]) -> String {
    let mut out = String::new();
    let places = [
        "ETLKIT_SHARED",
        "ETLKIT_PYTHON",
        "ETLKIT_NODE_MODULES",
        "ETLKIT_CHROMIUM",
    ];
    for name in places
        .into_iter()
        .chain(needs.iter().map(|need| need.demand))
    {
        out.push_str(&format!("const _: Option<&str> = option_env!({name:?});\n"));
    }
    let missing: Vec<&str> = needs
        .iter()
        .filter(|need| !need.is_demanded())
        .filter_map(|need| need.missing.as_deref())
        .collect();
    if !missing.is_empty() {
        out.push_str(&format!(
            "#[ignore = \"needs {}\"]\n",
            missing.join(" and ").escape_debug()
        ));
    }
    out
}
