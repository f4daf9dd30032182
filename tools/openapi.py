#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""openapi.py: what tracecollectd answers over HTTP, as OpenAPI 3.1, from the tables (*.def) and messages (*.proto)."""
import ast
import json
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent
ABOUT = ("What tracecollectd answers; docs/HTTP.md explains it. HEAD is answered where GET is, but for jobs and leases. Messages are JSON, or "
         "protobuf for who asks with Accept: application/protobuf; bodies are either. x-roles says who may: loopback is a user of the collector's "
         "host over plain TCP, socket one who may write to its Unix socket, reader and agent are the roles of certificates, nobody is a peer over TLS "
         "without one.")
ROLES = ("server", "agent", "reader", "nobody", "loopback", "socket", "metrics")
TYPES = {"MESSAGE": "application/json", "LINES": "application/x-ndjson", "JSON": "application/json", "TEXT": "text/plain",
         "BYTES": "application/octet-stream", "EVENTS": "text/event-stream", "EMPTY": None}
STATUS = {"TRIGGER_ADD": "201", "LEASE_OPEN": "201", "VERIFY": "202"}
LIMITS = {"INT64_MAX": 2**63 - 1, "UINT64_MAX": 2**64 - 1, "UINT32_MAX": 2**32 - 1}
ERROR = {"type": "object", "required": ["status", "code", "error"], "properties": {
    "status": {"type": "integer"}, "code": {"type": "string", "description": "A name of `tracectl tables results`."}, "error": {"type": "string"}}}
PROTOS = ("meta", "report", "archive")
FULL = ("args", "pc")  # these may use all 64 bits
TEXT = {"schema": {"type": "string"}}
PLAIN = {"text/plain": TEXT, "text/event-stream": TEXT, "application/x-ndjson": TEXT, "application/json": {"schema": {}},
         "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}  # for answers that are not messages


def rows(table, macro):
    """The arguments of each row, as words of C; a string is its text."""
    for line in (SOURCE / table).read_text().splitlines():
        row = re.fullmatch(rf"{macro}\((.*)\)", line)
        if row:
            words = [""]
            for part in re.findall(r'"(?:\\.|[^"\\])*"|\([^()]*\)|.', row[1]):  # a string, a text in brackets, or one character
                words += [""] if part == "," else []
                words[-1] += part if part != "," else ""
            yield [ast.literal_eval(word) if word.startswith('"') else word for word in map(str.strip, words)]


def messages():
    """Name to fields: (type, name, repeated, of a oneof). Enums are numbers."""
    found = {}
    for proto in PROTOS:
        text = re.sub(r"//.*", "", (SOURCE / f"proto/{proto}.proto").read_text())
        for name, body in re.findall(r"(?ms)^message (\w+) \{(.*?)^\}", text):
            choices = "".join(re.findall(r"(?s)oneof \w+ \{(.*?)\}", body))
            fields = sorted((int(number), kind, field, bool(repeated)) for repeated, kind, field, number in
                            re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", body))
            found[name] = [(kind, field, repeated, f" {field} =" in choices) for _, kind, field, repeated in fields]
    return found


MESSAGES = messages()


def reference(name):
    return {"$ref": f"#/components/schemas/{name}"}


def schema_of_value(kind, field):
    """Generators take an integer without a format for 32 bits, and some support only int64 for 64 bits."""
    if kind in MESSAGES:
        return reference(kind)
    return {"string": {"type": "string"}, "bytes": {"type": "string", "pattern": "^([0-9a-f]{2})*$"}, "bool": {"type": "boolean"},
            "double": {"type": ["number", "null"]}}.get(kind, {"type": "integer", "format": "uint64" if field in FULL else "int64"})


HEADERS = "Range", "If-Range", "If-None-Match", "Want-Content-Digest"  # of a file


def add_schema(schemas, name, is_question=False):
    """As written by proto/json.h: all fields are present, except absent messages. A request may leave out any field."""
    if name in schemas:
        return
    required, properties = [], {}
    schemas[name] = {"type": "object", "required": required, "properties": properties}
    for kind, field, repeated, is_choice in MESSAGES[name]:
        value = schema_of_value(kind, field)
        if repeated:
            value = {"type": "array", "items": value}
        elif kind not in MESSAGES and not is_choice and not is_question:
            required.append(field)
        properties[field] = value
        if kind in MESSAGES:
            add_schema(schemas, kind, is_question)


def schema_of_param(kind):
    name, _, given = kind.partition("(")
    if name == "NUMBER":
        default, low, high = (LIMITS.get(word.strip()) or int(word) for word in given.rstrip(")").split(","))
        schema = {"type": "integer", "format": "int64", "minimum": low}
        if high < 2**63:
            schema["maximum"] = high
        if low <= default <= high:
            schema["default"] = default
        return schema
    if name == "WORD":
        words = ast.literal_eval(given.rstrip(")")).split()
        return {"type": "string", "enum": words, "default": words[0]}
    return {"FLAG": {"type": "integer", "enum": [0, 1], "default": 0},
            "TIME": {"type": "string", "examples": ["2026-03-01T12:00:00Z", "-5m", "@1772366400.5"]},
            "SPAN": {"type": "string", "examples": ["20s", "5m"]},
            "STREAM": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "TEXT": {"type": "string"}}[name]


def parameters_of(route, below):
    found = [] if below == "NULL" else [{"name": below, "in": "path", "schema": {"type": "string"}, "required": True}]
    for of, name, kind, _, about in rows("proto/params.def", "TP_PARAM"):
        if of == route:
            parameter = {"name": name, "in": "query", "schema": schema_of_param(kind.removeprefix("NEEDED").strip())}
            if kind.startswith("NEEDED"):
                parameter["required"] = True
            found.append({**parameter, "description": about})
    return found


def message(name, json_type, is_whole, schemas, is_question=False):
    name = "".join(word.capitalize() for word in name[2:-1].split("_"))
    if is_whole:
        add_schema(schemas, name, is_question)
    return {json_type: {"schema": reference(name)} if is_whole else PLAIN[json_type],
            "application/protobuf": {"schema": {"type": "string", "format": "binary", "description": f"tracecollect.v1.{name}"}}}


def responses_of(route, kind, answer, about, schemas):
    good = {"description": about}
    if TYPES[kind] is not None:
        good["content"] = message(answer, TYPES[kind], kind == "MESSAGE", schemas) if answer != "NONE" else {TYPES[kind]: PLAIN[TYPES[kind]]}
    found = {STATUS.get(route, "204" if kind == "EMPTY" else "200"): good}
    if kind == "BYTES":
        found |= {"206": good, "304": {"description": "If-None-Match names it."}}
    if route in ("HEALTHZ", "READYZ"):
        found["503"] = good
    error = {"description": "Why not.", "content": {"application/json": {"schema": reference("Error")}}}
    return {**found, "4XX": error, "5XX": error}  # not "default": an answer whose type a generator does not know is not an error


def document(version):
    acts = {row[0]: [role for role in ROLES if f"R({role.upper()})" in row[2]] for row in rows("lib/tls/role.def", "TC_ACT")}
    paths, schemas = {}, {"Error": ERROR}
    for route, method, path, below, act, kind, ask, answer, about in rows("proto/routes.def", "TP_ROUTE"):
        if kind == "PAGE":
            continue
        operation = {"operationId": route.lower(), "summary": about, "x-roles": acts[act], "parameters": parameters_of(route, below)}
        if kind == "BYTES":
            operation["parameters"] += [{"name": name, "in": "header", "schema": {"type": "string"}} for name in HEADERS]
        if method == "POST":
            operation["requestBody"] = {"content": message(ask, "application/json", True, schemas, is_question=True)}
        operation["responses"] = responses_of(route, kind, answer, about, schemas)
        paths.setdefault(path if below == "NULL" else f"{path}{{{below}}}", {})[method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": "tracecollectd", "version": version, "description": ABOUT},
            "paths": paths, "components": {"schemas": schemas}}


def text():
    version = re.search(r"project\(\w+ VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    return json.dumps(document(version), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(text(), end="")
