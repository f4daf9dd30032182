// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// The part of nng's protocol that a subscriber needs: each side sends eight bytes that name its protocol, then the publisher
// sends messages with their length in front. The subscriber filters: a publisher sends every message to every subscriber.
const (
	publisher  = 0x20
	subscriber = 0x21
	maxMessage = 64 << 20
)

type feed struct {
	conn net.Conn
	in   *bufio.Reader
	ipc  bool // over a socket in the file system each message has one byte more in front
}

// dial connects to ipc://PATH, tcp://HOST:PORT or tls+tcp://HOST:PORT. The latter wants a folder with
// ca.pem, reader.pem and reader.key.
func dial(address, certs string) (*feed, error) {
	scheme, at, _ := strings.Cut(address, "://")
	var conn net.Conn
	var err error
	switch scheme {
	case "ipc":
		conn, err = net.Dial("unix", at)
	case "tcp":
		conn, err = net.Dial("tcp", at)
	case "tls+tcp":
		var config *tls.Config
		if config, err = readerTLS(certs); err == nil {
			conn, err = tls.Dial("tcp", at, config)
		}
	default:
		err = fmt.Errorf("%s: neither ipc://, tcp:// nor tls+tcp://", address)
	}
	if err != nil {
		return nil, err
	}
	f := &feed{conn: conn, in: bufio.NewReaderSize(conn, 1<<20), ipc: scheme == "ipc"}
	if err := f.greet(); err != nil {
		conn.Close()
		return nil, err
	}
	return f, nil
}

func readerTLS(folder string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "reader.pem"), filepath.Join(folder, "reader.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("ca.pem holds no certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: roots}, nil
}

func (f *feed) greet() error {
	if _, err := f.conn.Write([]byte{0, 'S', 'P', 0, 0, subscriber, 0, 0}); err != nil {
		return err
	}
	var greeting [8]byte
	if _, err := io.ReadFull(f.in, greeting[:]); err != nil {
		return err
	}
	if !bytes.Equal(greeting[:], []byte{0, 'S', 'P', 0, 0, publisher, 0, 0}) {
		return fmt.Errorf("no publisher here: it says % x", greeting)
	}
	return nil
}

// next waits for a message: its topic and its body.
func (f *feed) next() (topic string, body []byte, err error) {
	if f.ipc {
		if _, err := f.in.Discard(1); err != nil {
			return "", nil, err
		}
	}
	var length [8]byte
	if _, err := io.ReadFull(f.in, length[:]); err != nil {
		return "", nil, err
	}
	n := binary.BigEndian.Uint64(length[:])
	if n > maxMessage {
		return "", nil, fmt.Errorf("a message of %d bytes is longer than any there is", n)
	}
	message := make([]byte, n)
	if _, err := io.ReadFull(f.in, message); err != nil {
		return "", nil, err
	}
	name, body, found := bytes.Cut(message, []byte{0})
	if !found {
		return "", nil, errors.New("a message without a topic")
	}
	return string(name), body, nil
}
