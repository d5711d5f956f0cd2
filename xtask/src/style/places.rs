//! Finds the places in a file where its style is hard to read.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, Item, Pat};

/// A function may have this many lines.
const MAX_FUNCTION_LINES: usize = 80;

/// A chain of method calls may have this many combinators.
const MAX_COMBINATORS: usize = 2;

/// Methods of `Option`, `Result`, `bool` and `Iterator` that combine or transform.
const COMBINATORS: &[&str] = &[
    "all",
    "and",
    "and_then",
    "any",
    "chain",
    "filter",
    "filter_map",
    "find",
    "find_map",
    "flat_map",
    "flatten",
    "fold",
    "inspect",
    "is_none_or",
    "is_ok_and",
    "is_some_and",
    "map",
    "map_err",
    "map_or",
    "map_or_else",
    "map_while",
    "ok_or",
    "ok_or_else",
    "or",
    "or_else",
    "position",
    "reduce",
    "scan",
    "skip_while",
    "take_while",
    "then",
    "then_some",
    "transpose",
    "try_fold",
    "try_for_each",
    "unwrap_or_else",
    "xor",
    "zip",
];

/// What is hard to read at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `let (a, b) = (x, y);` and `(a, b) = (x, y);`
    TupleLet,
    /// `let name = |..| ..;`
    NamedClosure,
    /// A tuple as the pattern of a function's parameter.
    TupleParameter,
    /// A function of more than 80 lines.
    LongFunction,
    /// A chain of method calls with more than two combinators.
    LongChain,
}

impl Pattern {
    /// In the order of the columns.
    pub const ALL: [Self; 5] = [
        Self::TupleLet,
        Self::NamedClosure,
        Self::TupleParameter,
        Self::LongFunction,
        Self::LongChain,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::TupleLet => "tuple let",
            Self::NamedClosure => "named closure",
            Self::TupleParameter => "tuple parameter",
            Self::LongFunction => "long function",
            Self::LongChain => "long chain",
        }
    }
}

/// A place in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    pub pattern: Pattern,
    /// From 1.
    pub line: usize,
}

/// The product code of a file.
#[derive(Debug, Default)]
pub struct Found {
    pub places: Vec<Place>,
    /// Lines of items that are built for tests only.
    pub test_lines: usize,
}

/// Finds the places in a file, without the items that are built for tests only.
pub fn find(file: &syn::File) -> Found {
    let mut finder = Finder {
        found: Found::default(),
    };
    finder.visit_file(file);
    finder.found.places.sort_by_key(|place| place.line);
    finder.found
}

struct Finder {
    found: Found,
}

impl Finder {
    fn add(&mut self, pattern: Pattern, span: Span) {
        self.found.places.push(Place {
            pattern,
            line: span.start().line,
        });
    }

    /// Adds an item to the code of tests if its attributes say so.
    fn skip_test(&mut self, attributes: &[Attribute], span: Span) -> bool {
        let is_test = attributes.iter().any(is_test);
        if is_test {
            self.found.test_lines += lines(span);
        }
        is_test
    }

    fn check_signature(&mut self, signature: &syn::Signature) {
        for input in &signature.inputs {
            if let FnArg::Typed(parameter) = input
                && is_tuple_pattern(&parameter.pat)
            {
                self.add(Pattern::TupleParameter, parameter.span());
            }
        }
    }

    /// Checks the length of a function from `fn` to its last brace.
    fn check_length(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first_line = signature.fn_token.span.start().line;
        let last_line = body.brace_token.span.close().end().line;
        if last_line - first_line >= MAX_FUNCTION_LINES {
            self.add(Pattern::LongFunction, signature.fn_token.span);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        if !self.skip_test(attributes(item), item.span()) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.check_length(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if self.skip_test(&function.attrs, function.span()) {
            return;
        }
        self.check_length(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.check_length(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.check_signature(signature);
        visit::visit_signature(self, signature);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if self.skip_test(&local.attrs, local.span()) {
            return;
        }
        if let Some(init) = &local.init {
            match without_parentheses(&init.expr) {
                Expr::Tuple(_) if is_tuple_pattern(&local.pat) => {
                    self.add(Pattern::TupleLet, local.span());
                }
                Expr::Closure(_) if is_name(&local.pat) => {
                    self.add(Pattern::NamedClosure, local.span());
                }
                _ => {}
            }
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_assign(&mut self, assign: &'ast syn::ExprAssign) {
        if let (Expr::Tuple(_), Expr::Tuple(_)) = (&*assign.left, &*assign.right) {
            self.add(Pattern::TupleLet, assign.span());
        }
        visit::visit_expr_assign(self, assign);
    }

    /// Each chain is checked once, at its last call; its arguments are other chains.
    fn visit_expr_method_call(&mut self, last_call: &'ast syn::ExprMethodCall) {
        let mut combinators = 0;
        let mut call = last_call;
        loop {
            if COMBINATORS.iter().any(|name| call.method == name) {
                combinators += 1;
            }
            for argument in &call.args {
                self.visit_expr(argument);
            }
            match call_before(&call.receiver) {
                Ok(before) => call = before,
                Err(start) => {
                    self.visit_expr(start);
                    break;
                }
            }
        }
        if combinators > MAX_COMBINATORS {
            self.add(Pattern::LongChain, last_call.span());
        }
    }
}

/// The method call that a receiver is, also before `?`; otherwise the start of the chain.
fn call_before(receiver: &Expr) -> Result<&syn::ExprMethodCall, &Expr> {
    match receiver {
        Expr::MethodCall(call) => Ok(call),
        Expr::Try(question) => call_before(&question.expr),
        start => Err(start),
    }
}

fn without_parentheses(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(inner) => without_parentheses(&inner.expr),
        other => other,
    }
}

/// A tuple, also behind a reference or with a type.
fn is_tuple_pattern(pattern: &Pat) -> bool {
    match pattern {
        Pat::Tuple(_) => true,
        Pat::Type(typed) => is_tuple_pattern(&typed.pat),
        Pat::Reference(reference) => is_tuple_pattern(&reference.pat),
        Pat::Paren(inner) => is_tuple_pattern(&inner.pat),
        _ => false,
    }
}

/// A name, also with a type.
fn is_name(pattern: &Pat) -> bool {
    match pattern {
        Pat::Ident(_) => true,
        Pat::Type(typed) => is_name(&typed.pat),
        _ => false,
    }
}

fn lines(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

/// Whether an attribute is `#[test]` or makes an item part of test builds only: `#[cfg(test)]`, or
/// `#[cfg(all(..))]` with `test`.
pub fn is_test(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    if !attribute.path().is_ident("cfg") {
        return false;
    }
    match attribute.parse_args() {
        Ok(condition) => needs_test(&condition),
        Err(_) => false,
    }
}

fn needs_test(condition: &syn::Meta) -> bool {
    let syn::Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    if !list.path.is_ident("all") {
        return false;
    }
    let separated = syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
    match list.parse_args_with(separated) {
        Ok(conditions) => conditions.iter().any(needs_test),
        Err(_) => false,
    }
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(Pattern, usize)> {
        let found = find(&syn::parse_file(text).unwrap());
        found
            .places
            .iter()
            .map(|place| (place.pattern, place.line))
            .collect()
    }

    #[test]
    fn tuple_lets_have_a_tuple_on_both_sides() {
        let text = "fn f() {
            let (a, b) = (1, 2);
            let (c, d): (u8, u8) = (1, 2);
            (a, b) = (b, a);
            let (e, g) = pair();
            (e, g) = pair();
            let pair = (1, 2);
        }";
        let lines = [2, 3, 4];
        assert_eq!(places(text), lines.map(|line| (Pattern::TupleLet, line)));
    }

    #[test]
    fn closures_with_a_name_are_found_and_arguments_are_not() {
        let text = "fn f() {
            let add = |a, b| a + b;
            let mut count = move || 1;
            let typed: fn(u8) -> u8 = |a| a;
            let sum = list.iter().map(|a| a + 1).sum();
        }";
        let lines = [2, 3, 4];
        assert_eq!(
            places(text),
            lines.map(|line| (Pattern::NamedClosure, line))
        );
    }

    #[test]
    fn tuple_parameters_are_found_in_functions_only() {
        let text = "fn f((a, b): (u8, u8), c: u8) { g(|(a, b)| a + b) }
            impl S { fn g(&self, &(a, b): &(u8, u8)) {} }
            trait T { fn h((a, b): (u8, u8)) {} }
            fn pair(pair: (u8, u8)) {}";
        let lines = [1, 2, 3];
        assert_eq!(
            places(text),
            lines.map(|line| (Pattern::TupleParameter, line))
        );
    }

    #[test]
    fn functions_over_80_lines_are_long() {
        let function = |lines: usize| format!("fn f() {{{}}}", "\n".repeat(lines - 1));
        assert_eq!(places(&function(80)), []);
        assert_eq!(places(&function(81)), [(Pattern::LongFunction, 1)]);
        let method = format!("impl S {{\n/// Text.\npub {}\n}}", function(81));
        assert_eq!(places(&method), [(Pattern::LongFunction, 3)]);
    }

    #[test]
    fn chains_over_two_combinators_are_long_and_count_once() {
        let text = "fn f() {
            a.iter().map(g).filter(h).collect();
            a.map(g)?.filter(h).copied().zip(b);
            a.map(|x| x.map(g).filter(h).or(i)).and_then(j);
        }";
        let lines = [3, 4];
        assert_eq!(places(text), lines.map(|line| (Pattern::LongChain, line)));
    }

    #[test]
    fn items_for_tests_are_left_out_and_their_lines_counted() {
        let text = "#[cfg(test)]
            mod tests {
                fn f() { let (a, b) = (1, 2); }
            }
            #[test]
            fn g() { let h = || 1; }
            #[cfg(all(test, unix))]
            const A: u8 = { let (a, b) = (1, 2); a };
            #[cfg(not(test))]
            fn i() { let (a, b) = (1, 2); }";
        assert_eq!(places(text), [(Pattern::TupleLet, 10)]);
        let found = find(&syn::parse_file(text).unwrap());
        assert_eq!(found.test_lines, 8);
    }
}
