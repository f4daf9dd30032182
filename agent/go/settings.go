// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// settings are a Config completed from the environment and the defaults.
type settings struct {
	server, service, instance string
	files                     files
	spoolBytes, rate          uint64
	record                    time.Duration
	spoolDir                  string // "": none
	spoolDirBytes             uint64
}

const (
	spoolBytesDefault = 16 << 20
	diskForSpool      = 4                 // times the spool's bytes, if SpoolDirBytes is 0
	spoolDirBytesMin  = 2 * spoolBytesMin // half for this stream, half for streams of earlier programs
	spoolBytesMax     = math.MaxInt / 2   // 1 GiB if addresses have 32 bits
	recordMax         = time.Hour
	nameMax           = 64
)

func orEnv(value, name string) string {
	if value != "" {
		return value
	}
	return os.Getenv(name)
}

func isName(text string) bool {
	if len(text) == 0 || len(text) > nameMax {
		return false
	}
	for _, c := range []byte(text) {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !isLetter && strings.IndexByte("._:-", c) < 0 {
			return false
		}
	}
	return true
}

func defaultInstance() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	clean := []byte(host)
	for i, c := range clean {
		if !isName(string(c)) || c == ':' {
			clean[i] = '-'
		}
	}
	if most := nameMax - 12; len(clean) > most {
		clean = clean[:most]
	}
	return fmt.Sprintf("%s:%d", clean, os.Getpid())
}

// settle checks a Config and completes it.
func (c Config) settle() (settings, error) {
	s := settings{
		server: orEnv(c.Server, "TRACEAGENT_SERVER"), service: orEnv(c.Service, "TRACEAGENT_SERVICE"),
		instance: orEnv(c.Instance, "TRACEAGENT_INSTANCE"), spoolBytes: c.SpoolBytes, rate: c.RateBytesPerSecond,
	}
	certs := orEnv(c.Certs, "TRACEAGENT_CERTS")
	if s.instance == "" {
		s.instance = defaultInstance()
	}
	for _, given := range []struct{ name, value string }{{"server", s.server}, {"certs", certs}, {"service", s.service}} {
		if given.value == "" {
			return s, fmt.Errorf("%s is not given (TRACEAGENT_%s)", given.name, strings.ToUpper(given.name))
		}
	}
	for _, name := range []struct{ what, value string }{{"service", s.service}, {"instance", s.instance}} {
		if !isName(name.value) {
			return s, fmt.Errorf("%s \"%.80s\" is not 1 to 64 of A-Z a-z 0-9 . _ : -", name.what, name.value)
		}
	}
	if s.spoolBytes == 0 {
		s.spoolBytes = spoolBytesDefault
	}
	if s.spoolBytes < spoolBytesMin {
		return s, fmt.Errorf("spool_bytes is below %d", spoolBytesMin)
	}
	if s.spoolBytes > spoolBytesMax {
		return s, fmt.Errorf("spool_bytes is above %d", uint64(spoolBytesMax))
	}
	if c.SpoolDirBytes != 0 && c.SpoolDirBytes < spoolDirBytesMin {
		return s, fmt.Errorf("spool_dir_bytes is below %d", spoolDirBytesMin)
	}
	if err := checkServer(s.server); err != nil {
		return s, fmt.Errorf("server: %w", err)
	}
	var err error
	if s.record, err = c.recordTime(); err != nil {
		return s, err
	}
	if s.files, err = filesOf(certs); err != nil {
		return s, err
	}
	if _, err = s.files.config(""); err != nil {
		return s, err
	}
	return s, c.settleSpoolDir(&s)
}

func (c Config) settleSpoolDir(s *settings) (err error) {
	dir := orEnv(c.SpoolDir, "TRACEAGENT_SPOOL_DIR")
	switch {
	case dir == "":
		return nil
	case s.record != 0:
		return errors.New("spool_dir: a flight recorder (record_ms) keeps nothing on disk")
	}
	s.spoolDirBytes = c.SpoolDirBytes
	if s.spoolDirBytes == 0 {
		s.spoolDirBytes = diskForSpool * s.spoolBytes
	}
	if s.spoolDir, err = openRoot(dir); err != nil {
		err = fmt.Errorf("spool_dir: %w", err)
	}
	return err
}

func (c Config) recordTime() (time.Duration, error) {
	record := c.Record.Truncate(time.Millisecond)
	if text := os.Getenv("TRACEAGENT_RECORD_MS"); text != "" && record == 0 {
		ms, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("TRACEAGENT_RECORD_MS: \"%.40s\" is not a number", text)
		}
		record = time.Duration(ms) * time.Millisecond
	}
	if record < 0 || record > recordMax {
		return 0, fmt.Errorf("record_ms is above %d, an hour", recordMax.Milliseconds())
	}
	return record, nil
}

func checkServer(server string) error {
	if strings.HasPrefix(server, "@") {
		if server == "@" {
			return errors.New("@ without a file name")
		}
		return nil
	}
	_, _, err := splitAddress(server)
	return err
}

func splitAddress(text string) (host, port string, err error) {
	wrong := fmt.Errorf("\"%.80s\" is not HOST:PORT (a collector's port for agents is 7070 unless configured)", text)
	colon := strings.LastIndexByte(text, ':')
	if colon <= 0 {
		return "", "", wrong
	}
	host, port = text[:colon], text[colon+1:]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || host == "" || strings.ContainsAny(host, "[]") || port[0] < '0' || port[0] > '9' {
		return "", "", wrong
	}
	return host, port, nil
}

// address returns the collector's address. A ready file is read each time: each start of the collector writes a new one.
func address(server string) (host, hostPort string, err error) {
	if path, isFile := strings.CutPrefix(server, "@"); isFile {
		text, err := readFile("ready file", path)
		if err != nil {
			return "", "", err
		}
		server = ""
		for _, line := range strings.Split(string(text), "\n") {
			if value, isIt := strings.CutPrefix(strings.TrimRight(line, "\r"), "agents="); isIt {
				server = value
				break
			}
		}
		if server == "" {
			return "", "", fmt.Errorf("ready file %s has no line agents=HOST:PORT", path)
		}
	}
	host, port, err := splitAddress(server)
	if err != nil {
		return "", "", err
	}
	return host, net.JoinHostPort(host, port), nil
}
