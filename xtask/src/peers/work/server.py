"""A test that starts a server and talks to it."""

import http.server
import threading
import urllib.request


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
# A proxy of the sandbox is no way to oneself.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
assert opener.open(f"http://127.0.0.1:{server.server_port}/", timeout=10).read() == b"hello"
