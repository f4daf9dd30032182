# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that records what is posted to it."""
import http.server
import threading


class Receiver(http.server.ThreadingHTTPServer):
    """`answers` has a path's statuses, 204 behind them; with a Retry-After where it is a pair; "hang" is none until the test is over,
    "stall" a 200 with half of its body until then, "flood" a 200 whose body does not end."""
    daemon_threads = True

    def __init__(self, case):
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts, self.answers, self.over = [], {}, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        case.addCleanup(self.end)

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def of(self, path):
        return [post for post in list(self.posts) if post["path"] == path]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body})
        answers = self.server.answers.get(self.path, [])
        answer = answers.pop(0) if answers else 204
        if answer == "hang":
            self.server.over.wait()
            return
        if answer in ("stall", "flood"):
            self.send_response(200)
            self.send_header("Content-Length", str(10 ** 12))
            self.end_headers()
            self.wfile.write(b"half")
            try:
                while answer == "flood" and not self.server.over.is_set():
                    self.wfile.write(bytes(65536))
            except OSError:
                pass  # it has had enough
            else:
                self.server.over.wait()
            return
        status, retry_after = answer if isinstance(answer, tuple) else (answer, None)
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass
