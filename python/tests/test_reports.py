"""Reports are those of the command line."""

import json
import sys

import etwkit


def test_info_is_that_of_the_command_line(real, cli):
    assert etwkit.info(real) == json.loads(cli("info", "--format", "json", real))


def test_verify_is_that_of_the_command_line(real, cli):
    expected = json.loads(cli("verify", "--no-config", "--format", "json", real))
    assert etwkit.verify(str(real)) == expected


def test_several_traces_have_a_list_of_summaries_and_one_verdict(made, cli):
    paths = [path for path in made if path.suffix == ".etl"]
    with etwkit.open(paths) as trace:
        assert [report["file"] for report in trace.info()] == trace.names == [str(p) for p in paths]
        assert trace.verify()["verdict"] in {"complete", "incomplete", "unknown"}


def test_rules_are_selected(trace):
    findings = [finding["rule"] for finding in trace.verify()["findings"]]
    for rule in set(findings):
        left = trace.verify(allow=rule)["findings"]
        assert rule not in [finding["rule"] for finding in left]


def test_progress_reaches_the_total(trace):
    for run in [trace.info, trace.verify, lambda **options: list(trace.events(**options))]:
        calls = []
        run(progress=lambda done, total: calls.append((done, total)))
        assert calls and calls[-1][0] == calls[-1][1]
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_an_exception_of_the_progress_callback_is_raised(trace):
    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    for run in [trace.info, trace.verify, lambda **options: list(trace.events(**options))]:
        try:
            run(progress=stop)
        except Stop:
            continue
        raise AssertionError(f"{run} went on")


def test_the_version_is_one_of_the_module():
    assert etwkit.__version__ == sys.modules["etwkit._native"].__version__
