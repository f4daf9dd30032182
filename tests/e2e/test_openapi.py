# SPDX-License-Identifier: Apache-2.0
"""docs/openapi.json against the router and the answers of a real collector: what it says is so, and nothing else is there."""
import json
import re
import sys
import urllib.parse

from harness import BUILD, SOURCE, Case, UnixConnection
from served import Served
from test_http import serve

METHODS = ("get", "post", "put", "delete")
VALUES = {"service": "shop", "window": "1m", "format": "json", "goroutines": "1", "lanes": "proc", "kinds": "none", "wait": "1ms"}


def faults(value, schema, schemas, at="$"):
    """Returns the faults of a value against its schema; knows the schema words that ours use."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    types = schema.get("type")
    known = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
    if types is not None:
        of = types if isinstance(types, list) else [types]
        fits = any(isinstance(value, known[one]) and (one == "boolean") == isinstance(value, bool) for one in of)
        if not fits:
            return [f"{at}: {value!r} is no {types}"]
    found = []
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: {value!r} does not match {schema['pattern']}")
    for name in schema.get("required", ()):
        if name not in value:
            found.append(f"{at}: {name} is missing")
    for name, item in value.items() if isinstance(value, dict) and "properties" in schema else ():
        if name not in schema["properties"]:
            found.append(f"{at}.{name} is not described")
        else:
            found += faults(item, schema["properties"][name], schemas, f"{at}.{name}")
    for i, item in enumerate(value if "items" in schema else ()):
        found += faults(item, schema["items"], schemas, f"{at}[{i}]")
    return found


class OpenApi(Served):
    @classmethod
    def prepare(cls, host):
        serve(cls, host)
        cls.document = json.loads((SOURCE / "docs/openapi.json").read_text())
        cls.schemas = cls.document["components"]["schemas"]
        cls.stream = json.loads(cls.ask(cls, "GET", "/api/v1/streams")[2])["streams"][0]["stream"]

    def ask(self, method, target, body=None):
        """Over the socket, where all is answered that is answered at all: (status, fields, body)."""
        connection = UnixConnection(self.collector.ready["sock"])
        try:
            connection.request(method, target, body=body, headers={"Content-Type": "application/json"} if method in ("POST", "PUT") else {})
            answer = connection.getresponse()
            endless = answer.headers["Content-Type"] == "text/event-stream"
            return answer.status, answer.headers, b"" if endless else answer.read()
        finally:
            connection.close()

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                yield path, method, operation

    def value_of(self, parameter):
        schema, name = parameter["schema"], parameter["name"]
        if name in VALUES:
            return VALUES[name]
        if "pattern" in schema:
            return self.stream
        if schema["type"] == "integer":
            return str(schema.get("default", schema.get("minimum", 0)))
        return (schema.get("examples") or schema.get("enum") or ["1"])[0]

    def target(self, path, parameters=()):
        filled = path.replace("{id}", "1" if "segments" in path else "0" * 15 + "1").replace("{kind}", "stw").replace("{name}", "none")
        return filled + "?" + urllib.parse.urlencode([(p["name"], self.value_of(p)) for p in parameters])

    def needed(self, operation):
        return [p for p in operation["parameters"] if p["in"] == "query" and p.get("required")]

    def test_the_documents_are_what_the_tables_say(self):
        self.run_program(sys.executable, SOURCE / "tools/http_reference.py", BUILD)

    def test_it_has_what_generators_of_clients_stumble_without(self):
        """openapi-python-client reads each answer that it does not know as the default, where there is one; others take 32 bits for an integer without a format."""
        def integers(value, at):
            if isinstance(value, dict):
                if value.get("type") == "integer" and "enum" not in value and not at.startswith("$/components/schemas/Error"):
                    self.assertIn(value.get("format"), ("int64", "uint64"), at)
                for name, item in value.items():
                    integers(item, f"{at}/{name}")
            for i, item in enumerate(value if isinstance(value, list) else ()):
                integers(item, f"{at}/{i}")
        integers(self.document, "$")
        for path, method, operation in self.operations():
            with self.subTest(path=path, method=method):
                answers = operation["responses"]
                self.assertLessEqual({"4XX", "5XX"}, set(answers))
                self.assertNotIn("default", answers)
                self.assertTrue(all("schema" in content for answer in answers.values() for content in answer.get("content", {}).values()))
        for path in ("/healthz", "/readyz"):  # why it is not well is no Error
            answers = self.document["paths"][path]["get"]["responses"]
            self.assertEqual(answers["503"], answers["200"])

    def test_each_path_has_these_methods_and_no_other(self):
        for path, methods in self.document["paths"].items():
            heads = "get" in methods and path not in ("/api/v1/jobs/{id}", "/api/v1/leases/{id}")
            for method in METHODS:
                with self.subTest(path=path, method=method):
                    status, fields, body = self.ask(method.upper(), self.target(path), b"{}" if method in ("post", "put") else None)
                    if method in methods:
                        self.assertNotEqual(status, 405, body)
                        self.assertNotIn(b"no such path", body)
                    else:
                        self.assertEqual(status, 405)
                        want = [word for m in METHODS if m in methods for word in ([m.upper(), "HEAD"] if m == "get" and heads else [m.upper()])]
                        self.assertEqual(fields["Allow"], ", ".join(want))

    def test_each_parameter_is_taken_and_no_other(self):
        for path, method, operation in self.operations():
            parameters = [p for p in operation["parameters"] if p["in"] == "query"]
            if method != "get" or not path.startswith("/api/"):
                continue
            with self.subTest(path=path):
                status, _, body = self.ask("GET", self.target(path, self.needed(operation)) + "&nosuch=1")
                self.assertEqual(status, 400, body)
                self.assertIn(b'no parameter \\"nosuch\\"', body)
            for parameter in parameters:
                with self.subTest(path=path, parameter=parameter["name"]):
                    asked = self.needed(operation) + ([] if parameter.get("required") else [parameter])
                    status, _, body = self.ask("GET", self.target(path, asked))
                    if status == 400:  # understood, and not enough
                        self.assertRegex(body, rb"from and to come together|one of (goroutine|task)|says what is explained|stream or service is required|a service comes with slow|is no place|is not the id of a finding")
                    if parameter.get("required"):
                        rest = [p for p in self.needed(operation) if p is not parameter]
                        status, _, body = self.ask("GET", self.target(path, rest))
                        self.assertEqual(status, 400)
                        self.assertIn(b'parameter \\"%s\\" is missing' % parameter["name"].encode(), body)

    def test_answers_are_what_their_schemas_say(self):
        seen = set()
        for path, method, operation in self.operations():
            schema = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema")
            if method != "get" or not schema or path in ("/api/v1/jobs/{id}", "/api/v1/leases/{id}"):
                continue
            with self.subTest(path=path):
                status, _, body = self.ask("GET", self.target(path, self.needed(operation)))
                self.assertEqual(status, 200, body)
                self.assertEqual(faults(json.loads(body), schema, self.schemas), [])
                seen.add(path)
        self.assertLessEqual({"/api/v1/streams", "/api/v1/segments", "/api/v1/firings", "/api/v1/triggers"}, seen)
        for target in ("/api/v1/segments/99999", "/api/v1/segments?limit=x", "/api/v1/leases/1", "/nosuch"):
            status, _, body = self.ask("GET", target)
            self.assertEqual(faults(json.loads(body), self.schemas["Error"], self.schemas), [])
            self.assertEqual(json.loads(body)["status"], status)
