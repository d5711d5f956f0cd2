//! Scripts and command lines beyond the limits.

use etl_control::controller::{CommandLine, MAX_LINE};
use etl_synth::{Script, ScriptErrors};

use crate::MIB;
use crate::counting::peak;

/// The errors of an invalid script, which take little memory to find.
#[track_caller]
fn script_errors(script: &str) -> ScriptErrors {
    let (done, most) = peak(|| Script::new("fuzz.kdl", script).parse());
    assert!(most < 200 * MIB + 200 * script.len(), "{most} bytes");
    done.expect_err("the script has errors")
}

#[test]
fn script_bounds_repetitions() {
    let errors = script_errors("repeat 18446744073709551615 { }");
    assert!(
        errors.as_slice().iter().any(|e| e.message() == "too much"),
        "{errors}"
    );
    let errors = script_errors("repeat 18446744073709551615 { param \"a\" 1 }");
    assert!(
        errors.as_slice().iter().any(|e| e.message() == "too much"),
        "{errors}"
    );
    let mut script = "process \"a.exe\"".to_owned();
    for _ in 0..20 {
        script = format!("repeat 1000000 {{ {script} }}");
    }
    assert!(
        script_errors(&script)
            .as_slice()
            .iter()
            .any(|e| e.message() == "too much")
    );
}

/// Each thread and method takes memory when the script runs.
#[test]
fn script_bounds_threads_and_methods() {
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
        let errors = script_errors(&script);
        assert!(
            errors
                .as_slice()
                .iter()
                .any(|e| e.label().contains("threads or methods")),
            "{errors}"
        );
    }
    let errors = script_errors(&(managed(4) + "\nno-such-node"));
    assert!(
        !errors
            .as_slice()
            .iter()
            .any(|e| e.label().contains("threads or methods")),
        "{errors}"
    );
}

#[test]
fn script_bounds_length_of_parameters() {
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
fn script_bounds_inclusion_depth() {
    for script in [
        "include \"a\"".to_owned(),
        "include \"a\"\n".repeat(50),
        "repeat 1000000 { include \"a\" }".to_owned(),
    ] {
        let include = |_: &str| Ok(script.clone());
        let (done, most) = peak(|| Script::new("a", &script).include(&include).parse());
        assert!(done.is_err(), "it includes itself without end");
        assert!(most < 100 * MIB, "{most}");
    }
}

#[test]
fn script_bounds_nesting() {
    let deep = [
        "a { ".repeat(30_000),
        "/* ".repeat(30_000),
        // The `*` of a comment's beginning does not end it.
        "/*".repeat(2_500),
        "a \"}\" { ".repeat(30_000),
        "a #\"}\"# { ".repeat(30_000),
        format!("\"broken\n{}", "a { ".repeat(30_000)),
        format!("\"\"\"broken\n{}", "a \"}\" {\n".repeat(30_000)),
        format!("repeat 1 {{ include \"a\" }} {}", "a { ".repeat(30_000)),
    ];
    for script in &deep {
        let errors = script_errors(script);
        assert!(
            errors.as_slice()[0].message().contains("nested"),
            "{errors}"
        );
        let include = |_: &str| Ok(script.clone());
        assert!(
            Script::new("b", "include \"a\"")
                .include(&include)
                .parse()
                .is_err()
        );
    }
    // A script within the limit does not overflow the stack, which has 2 MiB in a test.
    let fine = format!("{}{}", "a { ".repeat(64), "}".repeat(64));
    assert!(
        !script_errors(&fine).as_slice()[0]
            .message()
            .contains("nested")
    );
}

/// 58,000 errors in one line of 512 KiB: each shows a piece of it.
#[test]
fn script_bounds_text_of_errors() {
    let script = format!("scenario \"a\" seed=1;{}", "bogus 1;".repeat(58_000));
    let errors = script_errors(&script);
    let text: usize = errors.as_slice().iter().map(|e| e.report().len()).sum();
    assert!(text < 1000 * 1000, "{text}");
    // Names that are quoted in messages.
    let script = format!("{} 1\n", "x".repeat(100_000)).repeat(5);
    let errors = script_errors(&script);
    let text: usize = errors.as_slice().iter().map(|e| e.report().len()).sum();
    assert!(text < 50_000, "{text}");
}

/// An action that is repeated millions of times starts as many threads.
#[test]
fn simulation_bounds_started_threads() {
    let script = "scenario \"t\" seed=1\nmachine processors=2\n\
                  process \"a.exe\" { every \"1us\" from=\"1s\" until=\"9s\" { start-thread } }\n\
                  at \"1s\" { run \"xperf -on PROC_THREAD -f kernel.etl\" }\n\
                  at \"9s\" { run \"xperf -stop\" }\n";
    let scenario = Script::new("a.kdl", script).parse().expect("a scenario");
    let (done, most) = peak(|| etl_synth::Simulation::new(&scenario).run_in_memory());
    let error = done.expect_err("it has no end");
    let errors = error.script_errors().expect("a place in the script");
    assert!(
        errors.as_slice()[0].message().contains("16384 threads"),
        "{error}"
    );
    assert!(most < 600 * MIB, "{most}");
}

#[test]
fn script_bounds_number_of_errors() {
    let errors = script_errors(&"nothing\n".repeat(5_000));
    assert!(errors.as_slice().len() <= 1000);
    let errors = script_errors(
        &(0..3000)
            .map(|i| format!("param \"a{i}\" 1\n"))
            .collect::<String>(),
    );
    assert!(
        errors
            .as_slice()
            .iter()
            .any(|e| e.message().contains("too many parameters"))
    );
}

#[test]
fn command_line_has_maximum_length() {
    let line = format!("xperf -start x -on {}", "a+".repeat(MAX_LINE));
    assert!(line.parse::<CommandLine>().is_err());
    let line = format!("xperf -start x -on {}", "a:1:1+".repeat(8000));
    let (_, most) = peak(|| line.parse::<CommandLine>());
    assert!(most < 16 * MIB, "{most}");
}
