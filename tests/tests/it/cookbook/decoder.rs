use etl_schema::testing::snapshot::Snapshot;

/// The decoder under test: compiled methods with the size of their code.
fn methods(trace: &[u8]) -> etl_events::Result<Vec<String>> {
    let mut trace = etl_events::from_bytes(trace)?;
    let mut events = trace.events().event("MethodLoadVerbose*");
    let mut out = Vec::new();
    while let Some(event) = events.next()? {
        let mut values = Vec::new();
        for name in ["MethodSize", "MethodNamespace", "MethodName"] {
            values.extend(event.get(name).map(|value| value.to_string()));
        }
        out.push(values.join(" "));
    }
    Ok(out)
}

/// The trace of a scenario. A recorded trace: `std::fs::read("traces/recipe.etl")`.
fn trace() -> Vec<u8> {
    let script = std::fs::read_to_string("cases/attach.kdl").unwrap();
    let scenario = etl_synth::Script::new("attach", &script).parse().unwrap();
    etl_synth::Simulation::new(&scenario)
        .run_in_memory()
        .unwrap()
        .remove(0)
        .bytes
}

#[test]
fn methods_do_not_change() {
    let found = methods(&trace()).unwrap();
    insta::assert_snapshot!(found[..3].join("\n"), @r#"
    407 Shop.CustomerChannel0 CheckHandler
    1364 Shop.ProviderQueue0 CheckQueue
    601 Shop.QueueSession1 ParseWriter
    "#);
    assert_eq!(found.len(), 16);
}

/// The input of the decoder. Times, ids and addresses are replaced by their order of appearance, so
/// that a new recording of the same events has the same text.
#[test]
fn trace_does_not_change() {
    let text = Snapshot::new().limit(2).render(trace().as_slice()).unwrap();
    insta::assert_snapshot!(text, @r#"
    ##1 +0us P1/T1 Microsoft-Windows-DotNETRuntime MethodJittingStarted_V1 id=145 v1 op=42 level=5 keywords=0x10
      MethodID=@1
      ModuleID=@2
      MethodToken=100663307
      MethodILSize=101
      MethodNamespace="Shop.CustomerChannel0"
      MethodName="CheckHandler"
      MethodSignature="bool  (int64,value class System.DateTime&)"
      ClrInstanceID=9
    ##2 +59us P1/T1 Microsoft-Windows-DotNETRuntime MethodJitMemoryAllocatedForCode id=146 v0 op=103 level=5 keywords=0x10
      MethodID=@1
      ModuleID=@2
      JitHotCodeRequestSize=407
      JitRODataRequestSize=0
      AllocatedSizeForJitCode=432
      JitAllocFlag=0
      ClrInstanceID=9
    "#);
}
