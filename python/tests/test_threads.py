"""Several threads read one trace."""

import threading
from concurrent.futures import ThreadPoolExecutor

import etwkit


def test_threads_read_the_same_events(path):
    with etwkit.open(path) as trace:
        expected = [event.json() for event in trace.events(names=True)]
        with ThreadPoolExecutor(4) as pool:
            read = lambda _: [event.json() for event in trace.events(names=True)]  # noqa: E731
            assert all(events == expected for events in pool.map(read, range(8)))


def test_threads_decode_the_same_event(path):
    with etwkit.open(path) as trace:
        events = list(trace.events())
        expected = [event.fields for event in events]
        with ThreadPoolExecutor(4) as pool:
            read = lambda _: [event.fields for event in events]  # noqa: E731
            assert all(fields == expected for fields in pool.map(read, range(8)))


def test_others_run_while_a_trace_is_read(path):
    """The interpreter is free: another thread goes on while this one reads."""
    with etwkit.open([path] * 8) as trace:
        done, counted = threading.Event(), 0

        def verify():
            trace.verify()
            done.set()

        thread = threading.Thread(target=verify)
        thread.start()
        while not done.wait(0.001):
            counted += 1
        thread.join()
        assert counted > 0
