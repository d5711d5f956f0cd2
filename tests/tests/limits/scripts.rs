//! Scripts and command lines that ask for more than is allowed.

use etl_control::controller::{CommandLine, MAX_LINE};
use etl_synth::{Script, ScriptErrors};

use crate::MIB;
use crate::counting::peak;

/// The mistakes of a script that has some, in little memory.
#[track_caller]
fn mistaken(script: &str) -> ScriptErrors {
    let (done, most) = peak(|| Script::new("fuzz.kdl", script).parse());
    assert!(most < 200 * MIB + 200 * script.len(), "{most} bytes");
    done.expect_err("it has mistakes")
}

#[test]
fn repeating_without_end() {
    let told = mistaken("repeat 18446744073709551615 { }");
    assert!(told.as_slice().iter().any(|e| e.message() == "too much"), "{told}");
    let told = mistaken("repeat 18446744073709551615 { param \"a\" 1 }");
    assert!(told.as_slice().iter().any(|e| e.message() == "too much"), "{told}");
    let mut script = "process \"a.exe\"".to_owned();
    for _ in 0..20 {
        script = format!("repeat 1000000 {{ {script} }}");
    }
    assert!(mistaken(&script).as_slice().iter().any(|e| e.message() == "too much"));
}

/// A number stands for as many things, each of which takes memory when the script runs.
#[test]
fn threads_and_methods_without_end() {
    let module = "module \"a.dll\" { methods 900000 ready=0; }\n";
    let managed = |modules: usize| {
        let modules = module.repeat(modules);
        format!(
            "process \"a.exe\" {{ clr \"core\" version=\"6.0.100\" {{ assembly \"A\" version=\"1.0.0.0\" {{\n{modules}}} }} }}"
        )
    };
    for script in [
        "process \"a.exe\" threads=4000000000".to_owned(),
        "repeat 1000 { process \"a.exe\" threads=65536; }".to_owned(),
        managed(5),
    ] {
        let told = mistaken(&script);
        assert!(told.as_slice().iter().any(|e| e.label().contains("threads or methods")), "{told}");
    }
    let told = mistaken(&(managed(4) + "\nno-such-node"));
    assert!(!told.as_slice().iter().any(|e| e.label().contains("threads or methods")), "{told}");
}

#[test]
fn texts_that_double() {
    let mut script = "param \"v0\" \"xxxxxxxxxx\"\n".to_owned();
    for i in 1..60 {
        let before = i - 1;
        script.push_str(&format!("param \"v{i}\" \"{{v{before}}}{{v{before}}}\"\n"));
    }
    let (done, most) = peak(|| Script::new("fuzz.kdl", &script).parse());
    assert!(done.is_err());
    assert!(most < 100 * MIB, "{most}");
}

#[test]
fn scripts_that_include_themselves() {
    for script in [
        "include \"a\"".to_owned(),
        "include \"a\"\n".repeat(50),
        "repeat 1000000 { include \"a\" }".to_owned(),
    ] {
        let include = |_: &str| Ok(script.clone());
        let (done, most) = peak(|| Script::new("a", &script).include(&include).parse());
        assert!(done.is_err(), "it never ends");
        assert!(most < 100 * MIB, "{most}");
    }
}

#[test]
fn braces_and_comments_in_each_other() {
    let deep = [
        "a { ".repeat(30_000),
        "/* ".repeat(30_000),
        "a \"}\" { ".repeat(30_000),
        "a #\"}\"# { ".repeat(30_000),
        format!("\"broken\n{}", "a { ".repeat(30_000)),
        format!("\"\"\"broken\n{}", "a \"}\" {\n".repeat(30_000)),
        format!("repeat 1 {{ include \"a\" }} {}", "a { ".repeat(30_000)),
    ];
    for script in &deep {
        let told = mistaken(script);
        assert!(told.as_slice()[0].message().contains("nested"), "{told}");
        let include = |_: &str| Ok(script.clone());
        assert!(Script::new("b", "include \"a\"").include(&include).parse().is_err());
    }
    // What is not refused does not exhaust the stack either, which in a test has 2 MiB.
    let fine = format!("{}{}", "a { ".repeat(64), "}".repeat(64));
    assert!(!mistaken(&fine).as_slice()[0].message().contains("nested"));
}

#[test]
fn too_many_mistakes_are_not_all_told() {
    let told = mistaken(&"nothing\n".repeat(50_000));
    assert!(told.as_slice().len() <= 1000);
    let told = mistaken(&(0..3000).map(|i| format!("param \"a{i}\" 1\n")).collect::<String>());
    assert!(told.as_slice().iter().any(|e| e.message().contains("too many parameters")));
}

#[test]
fn a_command_line_has_an_end() {
    let line = format!("xperf -start x -on {}", "a+".repeat(MAX_LINE));
    assert!(line.parse::<CommandLine>().is_err());
    let line = format!("xperf -start x -on {}", "a:1:1+".repeat(8000));
    let (_, most) = peak(|| line.parse::<CommandLine>());
    assert!(most < 16 * MIB, "{most}");
}
