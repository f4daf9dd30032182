// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unfit makes paths that are not small files, and returns the expected error for each.
func unfit(t *testing.T) map[string]string {
	folder := t.TempDir()
	pipe, large := filepath.Join(folder, "pipe"), filepath.Join(folder, "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	return map[string]string{pipe: "not a regular file", "/dev/zero": "not a regular file", large: "larger than 1 MiB", folder: "Is a directory"}
}

func TestAReadyFileThatIsNoSmallFileIsRefused(t *testing.T) {
	certs := certificates(t)
	for path, why := range unfit(t) {
		agent, _ := startHeard(t, config("@"+path, certs))
		waitFor(t, agent, "refused", func(s Status) bool { return strings.Contains(s.LastError, path+": ") })
		if s := agent.Status(); !strings.Contains(s.LastError, why) {
			t.Errorf("%s: %s", path, s.LastError)
		}
		agent.Stop(within(t, time.Millisecond))
	}
}

func TestACertificateThatIsNoSmallFileIsRefused(t *testing.T) {
	for path, why := range unfit(t) {
		for _, name := range []string{"ca.pem", "agent.pem", "agent.key"} {
			certs := certificates(t)
			file := filepath.Join(certs, name)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path, file); err != nil {
				t.Fatal(err)
			}
			_, err := Start(config("127.0.0.1:9", certs))
			if err == nil || !strings.Contains(err.Error(), file+": ") || !strings.Contains(err.Error(), why) {
				t.Errorf("%s is %s: %v", name, path, err)
			}
		}
	}
}

func TestFilesMayHaveTheNamesOfKubernetes(t *testing.T) {
	certs := certificates(t)
	for name, other := range map[string]string{"ca.pem": "ca.crt", "agent.pem": "tls.crt", "agent.key": "tls.key"} {
		path := filepath.Join(certs, name)
		if err := os.Rename(path, filepath.Join(certs, other)); err != nil {
			t.Fatal(err)
		}
		agent, err := Start(config("127.0.0.1:9", certs))
		if err != nil {
			t.Fatal(err)
		}
		agent.Stop(within(t, time.Millisecond))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want := "traceagent: " + certs + " has both " + name + " and " + other + ", two names of the same file: remove one"
		if _, err := Start(config("127.0.0.1:9", certs)); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
