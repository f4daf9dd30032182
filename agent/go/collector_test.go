// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// The kinds of frames, as docs/PROTOCOL.md numbers them.
const (
	hello = 1 + iota
	welcome
	header
	batch
	genend
	loss
	closing
	ack
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// collector is a second implementation of the protocol, from its description: it keeps the trace's
// bytes in memory.
type collector struct {
	listener net.Listener
	mu       sync.Mutex
	trace    bytes.Buffer
	seqs     map[string]uint64 // by stream: number of the last record
	closed   int               // streams
	hold     uint64            // not 0: the reason why nothing is acked
	beat     uint64            // ms between heartbeats
	fault    error
}

func listen(t *testing.T, certs string) *collector {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "server.pem"), filepath.Join(certs, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(certs, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, NextProtos: []string{"tracecollect/1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{listener: listener, beat: 5000, seqs: map[string]uint64{}}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.hear(conn) // the next stream's agent may connect before a stream has ended
		}
	}()
	return c
}

func (c *collector) hear(conn net.Conn) {
	defer conn.Close()
	if err := c.serve(conn); err != nil && err != io.EOF {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fault = err
	}
}

func (c *collector) serve(conn net.Conn) error {
	var head [32]byte
	l := peer{collector: c, conn: conn}
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return err
		}
		payload := make([]byte, binary.LittleEndian.Uint32(head[:]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return err
		}
		sum := crc32.Update(crc32.Checksum(payload, castagnoli), castagnoli, head[:24])
		if sum != binary.LittleEndian.Uint32(head[24:]) {
			return fmt.Errorf("checksum of kind %d", head[4])
		}
		if err := l.take(head[4], binary.LittleEndian.Uint64(head[8:]), payload); err != nil {
			return err
		}
	}
}

// waitForClosed waits until so many streams have ended.
func (c *collector) waitForClosed(t *testing.T, streams int) {
	t.Helper()
	closed := 0
	for deadline := time.Now().Add(patience()); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		c.mu.Lock()
		closed = c.closed
		c.mu.Unlock()
		if closed == streams {
			return
		}
	}
	t.Fatalf("%d streams ended, not %d", closed, streams)
}

// peer is an agent's connection.
type peer struct {
	*collector
	conn     net.Conn
	stream   string
	received uint64
}

func (c *peer) take(kind byte, seq uint64, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	const window = 1 << 20
	switch kind {
	case hello:
		c.stream = streamOf(payload)
		return say(c.conn, welcome, 1, 1, 4, c.seqs[c.stream], 5, window, 6, c.beat)
	case header, batch:
		c.trace.Write(payload)
	case loss:
		return fmt.Errorf("a loss")
	case closing:
		c.closed++
	}
	if seq == 0 {
		return nil // heartbeat
	}
	if seq != c.seqs[c.stream]+1 {
		return fmt.Errorf("record %d after %d", seq, c.seqs[c.stream])
	}
	c.seqs[c.stream] = seq
	c.received += uint64(32 + len(payload))
	if c.hold != 0 {
		return say(c.conn, ack, 1, 0, 2, c.received+window, 3, c.hold)
	}
	return say(c.conn, ack, 1, seq, 2, c.received+window)
}

// streamOf returns field 4 of a HELLO; the fields before it are numbers.
func streamOf(message []byte) string {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		message = message[n:]
		value, n := binary.Uvarint(message)
		message = message[n:]
		if tag == 4<<3|2 {
			return string(message[:value])
		}
	}
	return ""
}

// say sends a control frame whose message has the given pairs of field number and value.
func say(conn net.Conn, kind byte, fields ...uint64) error {
	frame := make([]byte, 32)
	for i := 0; i < len(fields); i += 2 {
		frame = binary.AppendUvarint(frame, fields[i]<<3)
		frame = binary.AppendUvarint(frame, fields[i+1])
	}
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-32))
	frame[4] = kind
	sum := crc32.Update(crc32.Checksum(frame[32:], castagnoli), castagnoli, frame[:24])
	binary.LittleEndian.PutUint32(frame[24:], sum)
	_, err := conn.Write(frame)
	return err
}

// certificates writes the certificates of a CA, a server and an agent to a folder of the test. expired: the names of those
// that are expired.
func certificates(t *testing.T, expired ...string) string {
	t.Helper()
	folder := t.TempDir()
	ends := func(name string) time.Time {
		if slices.Contains(expired, name) {
			return time.Now().Add(-time.Minute)
		}
		return time.Now().Add(time.Hour)
	}
	caKey, ca := certificate(t, folder, "ca", ends("ca"), nil, nil)
	certificate(t, folder, "server", ends("server"), ca, caKey)
	certificate(t, folder, "agent", ends("agent"), ca, caKey)
	return folder
}

func certificate(t *testing.T, folder, name string, ends time.Time, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		URIs: []*url.URL{{Scheme: "tracecollect", Opaque: name + "/test"}},
	}
	if ca == nil {
		template.IsCA, template.KeyUsage, template.URIs = true, x509.KeyUsageCertSign, nil
		ca, caKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(folder, name+".pem"), "CERTIFICATE", der)
	save(t, filepath.Join(folder, name+".key"), "PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

func save(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
