// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
)

// files are the paths for TLS. The files are read at each connection, because certificates are renewed.
type files struct{ ca, cert, key, crl string }

func filesOf(certs string) (files, error) {
	f := files{crl: os.Getenv("TRACEAGENT_CRL")}
	for _, file := range []struct {
		path        *string
		name, other string // the second as cert-manager and Kubernetes' TLS secrets have it
	}{{&f.ca, "ca.pem", "ca.crt"}, {&f.cert, "agent.pem", "tls.crt"}, {&f.key, "agent.key", "tls.key"}} {
		*file.path = filepath.Join(certs, file.name)
		other := filepath.Join(certs, file.other)
		if _, err := os.Stat(other); err != nil {
			continue
		}
		if _, err := os.Stat(*file.path); err == nil {
			return f, fmt.Errorf("%s has both %s and %s, two names of the same file: remove one", certs, file.name, file.other)
		}
		*file.path = other
	}
	return f, nil
}

// refusal is an error that another try alone does not solve.
type refusal struct {
	text    string
	forGood bool // the collector said that another try is useless
}

func (r refusal) Error() string { return r.text }

func refused(format string, args ...any) error { return refusal{text: fmt.Sprintf(format, args...)} }

const otherPort = "; is it the port for agents?"

type trust struct {
	files files
	host  string
	roots *x509.CertPool
	lists []*x509.RevocationList
}

// fileBytesMax limits the files that the agent reads.
const fileBytesMax = 1 << 20

// readFile reads a regular file that a setting names: a pipe or a device might never end.
func readFile(what, path string) ([]byte, error) {
	fault := func(why string) ([]byte, error) { return nil, fmt.Errorf("%s %s: %s", what, path, why) }
	file, err := os.OpenFile(path, os.O_RDONLY|doesNotWait, 0)
	if err != nil {
		return fault(sentence(err))
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return fault(sentence(err))
	case info.IsDir():
		return fault("Is a directory")
	case !info.Mode().IsRegular():
		return fault("not a regular file")
	}
	bytes, err := io.ReadAll(io.LimitReader(file, fileBytesMax+1))
	switch {
	case err != nil:
		return fault(sentence(err))
	case len(bytes) > fileBytesMax:
		return fault("larger than 1 MiB")
	}
	return bytes, nil
}

// config reads the files and returns the TLS settings for a host.
func (f files) config(host string) (*tls.Config, error) {
	t := &trust{files: f, host: host, roots: x509.NewCertPool()}
	ca, err := readFile("CA", f.ca)
	if err != nil {
		return nil, err
	}
	authorities := certificatesOf(ca)
	if len(authorities) == 0 {
		return nil, fmt.Errorf("CA %s: no certificate in PEM", f.ca)
	}
	for _, authority := range authorities {
		t.roots.AddCert(authority)
	}
	pair, err := f.pair()
	if err != nil {
		return nil, err
	}
	if t.lists, err = f.readLists(authorities); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocolALPN}, ServerName: host,
		GetClientCertificate:   always(pair),
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
		InsecureSkipVerify: true, VerifyConnection: t.verify, // our check has better messages, and checks the role
	}, nil
}

// always presents the certificate. crypto/tls would not send a certificate of an authority that the collector does not list;
// the collector would then report a missing certificate instead of an unknown authority.
func always(pair tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
}

func certificatesOf(text []byte) (found []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			found = append(found, certificate)
		}
	}
	return found
}

func (f files) pair() (tls.Certificate, error) {
	cert, err := readFile("certificate", f.cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readFile("key", f.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if len(certificatesOf(cert)) == 0 {
		return tls.Certificate{}, fmt.Errorf("certificate %s: no certificate in PEM", f.cert)
	}
	if !bytes.Contains(key, []byte("PRIVATE KEY-----")) {
		return tls.Certificate{}, fmt.Errorf("key %s: no private key in PEM", f.key)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("key %s does not fit certificate %s", f.key, f.cert)
	}
	return pair, nil
}

// readLists reads lists of revoked certificates; each must be whole and signed by an authority.
func (f files) readLists(authorities []*x509.Certificate) (lists []*x509.RevocationList, err error) {
	if f.crl == "" {
		return nil, nil
	}
	text, err := readFile("revocation list", f.crl)
	if err != nil {
		return nil, err
	}
	wrong := fmt.Errorf("revocation list %s: no whole list in PEM that the CA has signed", f.crl)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil || !isWhole(list) || !isSigned(list, authorities) {
			return nil, wrong
		}
		lists = append(lists, list)
	}
	if len(lists) == 0 {
		return nil, wrong
	}
	return lists, nil
}

// isWhole returns false if a critical extension says that the list is only a part, or a change.
func isWhole(list *x509.RevocationList) bool {
	for _, extension := range list.Extensions {
		if extension.Critical {
			return false
		}
	}
	return true
}

func isSigned(list *x509.RevocationList, authorities []*x509.Certificate) bool {
	for _, authority := range authorities {
		if list.CheckSignatureFrom(authority) == nil {
			return true
		}
	}
	return false
}

// --- the collector's certificate ---

func (t *trust) verify(state tls.ConnectionState) error {
	leaf := state.PeerCertificates[0]
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: t.roots, Intermediates: intermediates})
	if err != nil {
		return t.notTrusted(leaf, err)
	}
	for _, certificate := range chains[0] {
		if t.isRevoked(certificate) {
			return refused("collector's certificate: certificate revoked (by revocation list %s)", t.files.crl)
		}
	}
	return t.isCollector(leaf)
}

func (t *trust) notTrusted(leaf *x509.Certificate, err error) error {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) {
		return refused("collector's certificate: not signed by CA %s (%s)", t.files.ca, strings.TrimPrefix(err.Error(), "x509: "))
	}
	whose, why := "certificate", strings.TrimPrefix(err.Error(), "x509: ")
	if !invalid.Cert.Equal(leaf) {
		whose = "authority"
	}
	if invalid.Reason == x509.Expired {
		why = "certificate has expired, or is not valid yet"
	}
	return refused("collector's %s: %s (by CA %s)", whose, why, t.files.ca)
}

func (t *trust) isRevoked(certificate *x509.Certificate) bool {
	for _, list := range t.lists {
		if !bytes.Equal(list.RawIssuer, certificate.RawIssuer) {
			continue
		}
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(certificate.SerialNumber) == 0 {
				return true
			}
		}
	}
	return false
}

// isCollector checks that the only SAN URI has the server role; without any SAN URI, the host's name must match.
func (t *trust) isCollector(leaf *x509.Certificate) error {
	const role = "tracecollect:server/"
	if len(leaf.URIs) == 0 {
		if leaf.VerifyHostname(t.host) == nil {
			return nil
		}
		return refused("collector's certificate is not for %s", t.host)
	}
	if len(leaf.URIs) == 1 && strings.HasPrefix(leaf.URIs[0].String(), role) && len(leaf.URIs[0].String()) > len(role) {
		return nil
	}
	return refused("collector's certificate has no single SAN URI %sNAME (%s)", role, t.host)
}

// --- errors ---

// refusals are the alerts after which another try alone is useless, and whether they are about our certificate.
var refusals = map[uint8]struct {
	text     string
	isOfOurs bool
}{
	40:                    {"handshake failure", false},
	42:                    {"bad certificate", true},
	43:                    {"unsupported certificate", true},
	44:                    {"certificate revoked", true},
	45:                    {"certificate expired", true},
	46:                    {"certificate unknown", true},
	48:                    {"unknown CA", true},
	49:                    {"access denied", false},
	70:                    {"protocol version", false},
	116:                   {"certificate required", false},
	noApplicationProtocol: {"no application protocol", false},
}

// lost returns a readable reason why a connection ended.
func (f files) lost(err error) error {
	var no refusal
	var plain tls.RecordHeaderError
	alert, isAlert := alertOf(err)
	switch {
	case errors.As(err, &no):
		return no
	case errors.As(err, &plain):
		return fmt.Errorf("TLS: wrong version number%s", otherPort)
	case !isAlert:
		return errors.New(sentence(err))
	}
	known, isRefusal := refusals[alert]
	switch {
	case !isRefusal:
		return fmt.Errorf("collector refuses: TLS alert %d, %s", alert, sentence(err))
	case known.isOfOurs:
		return refused("collector refuses certificate %s: TLS alert %d, %s", f.cert, alert, known.text)
	case alert == noApplicationProtocol:
		return refused("collector refuses: TLS alert %d, %s%s", alert, known.text, otherPort)
	}
	return refused("collector refuses: TLS alert %d, %s", alert, known.text)
}

const noApplicationProtocol = 120

// alertOf returns the alert that ended a connection. crypto/tls has an unexported type for alerts.
func alertOf(err error) (alert uint8, isAlert bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	value := reflect.ValueOf(op.Err)
	if value.Kind() != reflect.Uint8 {
		return 0, false
	}
	return uint8(value.Uint()), true
}

// sentence returns an error's text without context; a system error begins with a capital letter, as from strerror().
func sentence(err error) string {
	var number syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.As(err, &number):
		text := strings.TrimSuffix(number.Error(), ".") // Windows adds a full stop
		return strings.ToUpper(text[:1]) + text[1:]
	case errors.As(err, &dns):
		return dns.Err
	}
	return err.Error()
}
