# SPDX-License-Identifier: Apache-2.0
"""Programs in languages with a runtime: Python's multiprocessing in its three ways, node, java."""
import os
import shutil
import subprocess
import sys

from programs.program import Command, Names

PYTHON = """
import multiprocessing, sys, threading, time
def work(n):
    time.sleep(0.01)
    return n * n
def serve(conn, lock):
    for n in iter(conn.recv, None):
        with lock:
            conn.send(n + 1)
if __name__ == "__main__":
    ways = multiprocessing.get_context(sys.argv[1])
    with ways.Pool(3) as pool:
        print(sum(pool.map(work, range(60))))
        pool.close()
        pool.join()
    (here, there), lock = ways.Pipe(), ways.Lock()
    child = ways.Process(target=serve, args=(there, lock))
    child.start()
    for n in range(100):
        here.send(n)
        assert here.recv() == n + 1
    here.send(None)
    child.join()
    print(child.exitcode)
    failing = ways.Process(target=sys.exit, args=(5,))
    failing.start()
    failing.join()
    threads = [threading.Thread(target=time.sleep, args=(0.05,)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    sys.exit(failing.exitcode)
"""

# libuv's pool reads and writes, a worker hashes, a server answers, a child runs.
NODE = """
const fs = require('fs'), http = require('http'), crypto = require('crypto'), zlib = require('zlib')
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const { execFileSync } = require('child_process')
if (!isMainThread) {
  let hash = crypto.createHash('sha256')
  for (let i = 0; i < 2000; i++) hash.update(String(i * workerData))
  parentPort.postMessage(hash.digest('hex'))
} else (async () => {
  const hashes = await Promise.all([1, 2, 3].map(n => new Promise((ok, bad) => {
    const worker = new Worker(__filename, { workerData: n })
    worker.on('message', ok).on('error', bad)
  })))
  console.log(hashes.join('\\n'))
  await Promise.all([...Array(20).keys()].map(async n => {
    await fs.promises.writeFile(`file${n}`, 'x'.repeat(n * 1000))
    return (await fs.promises.readFile(`file${n}`)).length
  })).then(sizes => console.log(sizes.reduce((a, b) => a + b)))
  console.log(zlib.gunzipSync(zlib.gzipSync('packed'.repeat(1000))).length)
  const server = http.createServer((request, answer) => answer.end(request.url))
  await new Promise(ok => server.listen(0, '127.0.0.1', ok))
  for (let i = 0; i < 30; i++) {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/${i}`)
    if (await answer.text() !== `/${i}`) throw new Error('wrong answer')
  }
  server.close()
  console.log(execFileSync('/bin/echo', ['child']).toString().trim())
  console.error('to stderr')
  await new Promise(ok => setTimeout(ok, 300))
  process.exitCode = 4
  process.nextTick(() => server.closeAllConnections())
})()
"""

# A pool of 80 threads (more than the 62 that once lost every trace), locks, files, a socket, a child, the collector of garbage.
JAVA = """
import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
public class Work {
  public static void main(String[] args) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(80);
    List<Future<Integer>> jobs = new ArrayList<>();
    Object lock = new Object();
    int[] sum = new int[1];
    for (int i = 0; i < 400; i++) {
      int n = i;
      jobs.add(pool.submit(() -> { byte[] some = new byte[100000]; Thread.sleep(2); synchronized (lock) { sum[0] += n; } return some.length; }));
    }
    long total = 0;
    for (Future<Integer> job : jobs) total += job.get();
    System.out.println(total + " " + sum[0]);
    pool.shutdown();
    System.out.println(pool.awaitTermination(10, TimeUnit.SECONDS));
    try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getByName("127.0.0.1"))) {
      Thread echo = new Thread(() -> {
        try (Socket peer = server.accept()) { peer.getInputStream().transferTo(peer.getOutputStream()); } catch (IOException e) { throw new RuntimeException(e); }
      }, "echo");
      echo.start();
      try (Socket client = new Socket(server.getInetAddress(), server.getLocalPort())) {
        client.getOutputStream().write("echoed".getBytes());
        client.shutdownOutput();
        System.out.println(new String(client.getInputStream().readAllBytes()));
      }
      echo.join();
    }
    Files.writeString(Path.of("file"), "x".repeat(5000));
    System.out.println(Files.size(Path.of("file")));
    Process child = new ProcessBuilder("/bin/echo", "child").start();
    System.out.print(new String(child.getInputStream().readAllBytes()));
    System.gc();
    System.err.println("to stderr");
    Thread.sleep(300);
    System.exit(child.waitFor() + 6);
  }
}
"""


class Python(Command):
    files = {"work.py": PYTHON}

    def __init__(self, way, services):
        self.name, self.command = f"python_{way}", ("-I", "-S", "work.py", way)  # what it needs not is not looked for
        self.expects = services

    def path(self):
        return os.path.realpath(sys.executable)  # a shim would be a shell's script


class Node(Command):
    name = "node"
    executable = "node"
    files = {"work.js": NODE}
    command = ("work.js",)
    expects = {"node": Names({"epoll_pwait", "read", "write", "pthread_cond_wait"}, {"network (poll)", "sync (condition)"}, {"node"})}


class Java(Command):
    name = "java"
    executable = "java"
    command = ("-Xmx64m", "-XX:TieredStopAtLevel=1", "Work")
    classes = {}  # what the compiler made, once for all runs

    def run(self, folder, environment):
        if not self.classes:
            (folder / "Work.java").write_text(JAVA)
            subprocess.run(["javac", "-J-XX:TieredStopAtLevel=1", "-proc:none", "Work.java"], check=True, cwd=folder, stdin=subprocess.DEVNULL)
            self.classes.update({path.name: path.read_bytes() for path in folder.glob("*.class")})
        for name, code in self.classes.items():
            (folder / name).write_bytes(code)
        return super().run(folder, environment)

    def missing(self):
        return super().missing() or (None if shutil.which("javac") else "there is no javac here")
    expects = {"java": Names({"read", "write", "pthread_cond_wait"}, {"sync (condition)"}, {"java"})}


PYTHON_NAMES = Names({"read", "write", "waitpid", "sem_wait"}, threads={r"python3.*"})
PROGRAMS = (Python("spawn", {"python3.11": PYTHON_NAMES}), Python("fork", {"python3.11": PYTHON_NAMES}),
            Python("forkserver", {"python3.11": PYTHON_NAMES}), Node(), Java())
