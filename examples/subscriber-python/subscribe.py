#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the live feed of a collector.

Needs two packages of PyPI, pynng and protobuf, and the build's description of the messages,
build/release/proto/feed.desc (installed: share/tracecollect/proto/feed.desc).
Messages and topics are explained in proto/feed.proto.
"""
import argparse
import pathlib
import sys

import pynng
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
QUEUE_MESSAGES = 4096  # our end's queue: what is lost in it is lost as well
LISTS = ("reports", "generations", "alerts", "events")


def feed_message_class(path):
    """The class of FeedMessage, made from its description; no generated code."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tracecollect.v1.FeedMessage"))


def feed_url(where):
    """An nng URL, or the feed= line of a collector's --ready-file given as @FILE."""
    if not where.startswith("@"):
        return where
    lines = pathlib.Path(where[1:]).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)["feed"]


def reader_tls(folder):
    """TLS with the reader's certificate that `tracectl certs init` made."""
    def text(name):
        return (pathlib.Path(folder) / name).read_text()

    return pynng.TLSConfig(pynng.TLSConfig.MODE_CLIENT, auth_mode=pynng.TLSConfig.AUTH_MODE_REQUIRED,
                           server_name="localhost", ca_string=text("ca.pem"),
                           own_cert_string=text("reader.pem"), own_key_string=text("reader.key"))


class Gaps:
    """Counts what was lost: each topic numbers its messages."""

    def __init__(self):
        self.expected = {}

    def before(self, topic, message):
        """How many messages of the topic are missing before this one."""
        key = (topic, message.began_wall_ns)
        lost = message.seq - self.expected.get(key, message.seq)
        self.expected[key] = message.seq + message.count
        return lost


# --- reports: their schema says what they hold, so this reads every kind ---

def value(report, said):
    """A number, a text, a share, a Distribution, a list of frames; None: not known."""
    which = said.WhichOneof("is")
    if which == "stack":
        return [report.frames[i] for i in report.stacks[said.stack].frames]
    return getattr(said, which) if which else None


def by_name(report, fields, values):
    return {field.name: value(report, said) for field, said in zip(fields, values)}


def figures(report):
    return by_name(report, report.schema.figures, report.figures)


def rows(report, name):
    """The rows of a table; "other" in one: the sum of the rows that are not listed."""
    for schema, table in zip(report.schema.tables, report.tables):
        if schema.name == name:
            for row in table.rows:
                yield by_name(report, schema.columns, row.values) | ({"other": True} if row.other else {})


def text(said):
    if hasattr(said, "total_ns"):
        return f"{said.count} in {said.total_ns / 1e6:.3f} ms"
    return " < ".join(frame.function for frame in said) if isinstance(said, list) else str(said)


def words(values):
    return ", ".join(f"{name} {text(said)}" for name, said in values.items())


def describe(name, item, table=None):
    if name == "reports":
        lines = [f"window {item.window}: {item.events} events up to generation {item.last_gen}: {words(figures(item.report))}"]
        return "\n    ".join(lines + [words(row) for row in rows(item.report, table)])
    if name == "generations":
        state = item.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number[item.state].name
        return f"{state} {item.first_gen}..{item.last_gen} {item.reason}{item.path}"
    if name == "alerts":
        where = "".join(f"\n    {frame.function} {frame.file}:{frame.line}" for frame in item.stack)
        return f"{item.text}\n  {item.fetch}{where}"
    return f"{item.id} {item.duration_ns / 1e6:.3f} ms g={item.goroutine} {item.name} {item.text}"


def main():
    parser = argparse.ArgumentParser(description="Prints the live feed of a collector.")
    parser.add_argument("server", help="nng URL, or @FILE: a collector's --ready-file")
    parser.add_argument("topic", nargs="?", default="", help='first bytes of the topics wanted, such as "shop/"')
    parser.add_argument("-n", type=int, default=0, help="end after so many messages")
    parser.add_argument("--certs", help="folder with ca.pem, reader.pem and reader.key, for tls+tcp://")
    parser.add_argument("--table", help="print this table of reports, too, such as by_stack")
    parser.add_argument("--messages", type=pathlib.Path, default=REPOSITORY / "build/release/proto/feed.desc")
    options = parser.parse_args()

    feed_message = feed_message_class(options.messages)
    gaps, seen = Gaps(), 0
    tls = reader_tls(options.certs) if options.certs else None
    with pynng.Sub0(topics=options.topic, recv_buffer_size=QUEUE_MESSAGES, tls_config=tls) as feed:
        feed.dial(feed_url(options.server), block=False)
        while options.n == 0 or seen < options.n:
            topic, body = feed.recv().split(b"\0", 1)
            topic, message = topic.decode(), feed_message.FromString(body)
            lost = gaps.before(topic, message)
            if lost:
                print(f"{topic}: lost {lost}")
            for name in LISTS:
                for item in getattr(message, name):
                    print(f"{topic} {describe(name, item, options.table)}")
            sys.stdout.flush()
            seen += message.count


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
