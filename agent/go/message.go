// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/binary"
	"errors"
)

// This file writes and reads the messages of proto/frame.proto field by field: they are few and small.

// Types of a field on the wire.
const (
	wireVarint = iota
	wireFixed64
	wireBytes
	wireFixed32 = 5
)

// pack is a message that is being written. Zero values are left out.
type pack []byte

func (p *pack) number(field int, value uint64) {
	if value != 0 {
		*p = binary.AppendUvarint(binary.AppendUvarint(*p, uint64(field)<<3|wireVarint), value)
	}
}

func (p *pack) fixed32(field int, value uint32) {
	if value != 0 {
		*p = binary.LittleEndian.AppendUint32(binary.AppendUvarint(*p, uint64(field)<<3|wireFixed32), value)
	}
}

func (p *pack) bytes(field int, value []byte) {
	if len(value) > 0 {
		*p = append(binary.AppendUvarint(binary.AppendUvarint(*p, uint64(field)<<3|wireBytes), uint64(len(value))), value...)
	}
}

func (p *pack) text(field int, value string) { p.bytes(field, []byte(value)) }

var errMessage = errors.New("a message cannot be read")

// eachField calls take for each field of a message: with the number of a varint, or the bytes of a string or a message, which
// stay the caller's.
func eachField(message []byte, take func(field int, number uint64, bytes []byte)) error {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29-1 {
			return errMessage
		}
		message = message[n:]
		var number uint64
		var bytes []byte
		switch key & 7 {
		case wireVarint:
			if number, n = binary.Uvarint(message); n <= 0 {
				return errMessage
			}
		case wireBytes:
			length, m := binary.Uvarint(message)
			if m <= 0 || length > uint64(len(message)-m) {
				return errMessage
			}
			bytes = message[m : m+int(length)]
			n = m + int(length)
		case wireFixed32:
			n = 4
		case wireFixed64:
			n = 8
		default:
			return errMessage
		}
		if n > len(message) {
			return errMessage
		}
		message = message[n:]
		take(int(key>>3), number, bytes)
	}
	return nil
}

func (c *counters) pack(isReporting bool) pack {
	var p pack
	p.number(1, c.produced.batches)
	p.number(2, c.produced.bytes)
	p.number(3, c.lost.batches)
	p.number(4, c.lost.bytes)
	p.number(5, c.lostGenerations)
	p.number(6, c.spooled.bytes)
	p.number(7, c.spooled.batches)
	if isReporting {
		p.number(8, c.reportedSeq)
		p.number(9, c.reported.batches)
		p.number(10, c.reported.bytes)
	}
	p.number(11, uint64(c.lastLoss))
	return p
}

type welcomeMessage struct {
	major, durableSeq, creditBytes, heartbeatMS uint64
}

func readWelcome(message []byte) (w welcomeMessage, err error) {
	err = eachField(message, func(field int, number uint64, _ []byte) {
		switch field {
		case 1:
			w.major = uint64(uint32(number)) // the field has 32 bits
		case 4:
			w.durableSeq = number
		case 5:
			w.creditBytes = number
		case 6:
			w.heartbeatMS = uint64(uint32(number))
		}
	})
	return w, err
}

type ackMessage struct{ durableSeq, creditBytes, hold uint64 }

func readAck(message []byte) (a ackMessage, err error) {
	err = eachField(message, func(field int, number uint64, _ []byte) {
		switch field {
		case 1:
			a.durableSeq = number
		case 2:
			a.creditBytes = number
		case 3:
			a.hold = number
		}
	})
	return a, err
}

type goawayMessage struct {
	reason string
	waitMS uint64
}

func readGoaway(message []byte) (g goawayMessage, err error) {
	err = eachField(message, func(field int, number uint64, bytes []byte) {
		switch field {
		case 1:
			g.reason = plain(bytes)
		case 2:
			g.waitMS = uint64(uint32(number))
		}
	})
	return g, err
}

type refuseMessage struct {
	code        uint64
	reason      string
	isPermanent bool
}

func readRefuse(message []byte) (r refuseMessage, err error) {
	err = eachField(message, func(field int, number uint64, bytes []byte) {
		switch field {
		case 1:
			r.code = number
		case 2:
			r.reason = plain(bytes)
		case 3:
			r.isPermanent = number != 0
		}
	})
	return r, err
}

type snapMessage struct{ id, lastNS uint64 }

func readSnap(message []byte) (s snapMessage, err error) {
	err = eachField(message, func(field int, number uint64, _ []byte) {
		switch field {
		case 1:
			s.id = number
		case 2:
			s.lastNS = number
		}
	})
	return s, err
}

// plain makes a collector's text safe for a log: at most 100 characters of ASCII.
func plain(text []byte) string {
	if len(text) > 100 {
		text = text[:100]
	}
	out := make([]byte, len(text))
	for i, c := range text {
		if c < ' ' || c > '~' {
			c = '?'
		}
		out[i] = c
	}
	return string(out)
}
