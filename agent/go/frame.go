// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Kinds of frames, numbered as in docs/PROTOCOL.md.
const (
	kindHello = 1 + iota
	kindWelcome
	kindHeader
	kindBatch
	kindGenerationEnd
	kindLoss
	kindClose
	kindAck
	kindHeartbeat
	kindGoaway
	kindRefuse
	kindSnap
	kindSnapped
	kindLimit
)

const (
	headBytes      = 32
	inboundMax     = 4096    // largest control frame to an agent
	unknownMax     = 1 << 20 // largest frame of an unknown kind (a later minor version)
	criticalFlag   = 1
	protocolALPN   = "tracecollect/1"
	recordBytesMax = 72 << 10
)

// Variables, so that tests can combine other versions.
var protocolMajor, protocolMinor uint64 = 1, 1

var kindNames = [kindLimit]string{"", "HELLO", "WELCOME", "HEADER", "BATCH", "GENEND", "LOSS", "CLOSE", "ACK", "HEARTBEAT", "GOAWAY", "REFUSE", "SNAP", "SNAPPED"}

// isActedOn is false for a heartbeat, which only shows that the collector is alive, and for unknown kinds of later versions.
func (f frame) isActedOn() bool { return f.kind != 0 && f.kind != kindHeartbeat && f.kind < kindLimit }

var castagnoliTable = crc32.MakeTable(crc32.Castagnoli)

// frame is the head of a frame; sum is its payload's checksum.
type frame struct {
	kind     byte
	flags    byte
	len      uint32
	sum      uint32
	seq, gen uint64
}

// put writes the head of a frame for the wire.
func (f frame) put(head *[headBytes]byte) {
	f.putWaiting(head)
	binary.LittleEndian.PutUint32(head[24:], crc32.Update(f.sum, castagnoliTable, head[:24]))
}

// putWaiting writes the head of a frame in the spool: without a number, and with the checksum of the payload only.
func (f frame) putWaiting(head *[headBytes]byte) {
	*head = [headBytes]byte{4: f.kind, 5: f.flags}
	binary.LittleEndian.PutUint32(head[0:], f.len)
	binary.LittleEndian.PutUint64(head[8:], f.seq)
	binary.LittleEndian.PutUint64(head[16:], f.gen)
	binary.LittleEndian.PutUint32(head[24:], f.sum)
}

func readWaiting(head *[headBytes]byte) frame {
	return frame{
		kind: head[4], flags: head[5],
		len: binary.LittleEndian.Uint32(head[0:]), sum: binary.LittleEndian.Uint32(head[24:]),
		seq: binary.LittleEndian.Uint64(head[8:]), gen: binary.LittleEndian.Uint64(head[16:]),
	}
}

// renumber changes the number in a head for the wire. The payload is summed first, the head last: so the old and the new
// checksum differ by the checksums of the two heads.
func renumber(head *[headBytes]byte, seq uint64) {
	before := crc32.Checksum(head[:24], castagnoliTable)
	binary.LittleEndian.PutUint64(head[8:], seq)
	sum := binary.LittleEndian.Uint32(head[24:])
	binary.LittleEndian.PutUint32(head[24:], sum^before^crc32.Checksum(head[:24], castagnoliTable))
}

// readFrame reads a frame from the collector. It checks the head before it waits for the payload.
func readFrame(from io.Reader, buffer []byte) (frame, []byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return frame{}, nil, err
	}
	f := readWaiting(&head)
	if err := f.check(&head); err != nil {
		return frame{}, nil, err
	}
	if f.kind == 0 || f.kind >= kindLimit {
		return f, nil, skipPayload(from, f, &head)
	}
	payload := buffer[:f.len]
	if _, err := io.ReadFull(from, payload); err != nil {
		return frame{}, nil, err
	}
	return f, payload, f.checkSum(crc32.Checksum(payload, castagnoliTable), &head)
}

func (f frame) check(head *[headBytes]byte) error {
	isKnown := f.kind > 0 && f.kind < kindLimit
	limit := uint32(unknownMax)
	if isKnown {
		limit = inboundMax
	}
	switch {
	case head[6] != 0 || head[7] != 0 || binary.LittleEndian.Uint32(head[28:]) != 0:
		return fmt.Errorf("frame has reserved bits set")
	case f.flags&^criticalFlag != 0:
		return fmt.Errorf("frame has unknown flags 0x%02x", f.flags)
	case !isKnown && f.flags&criticalFlag != 0:
		return fmt.Errorf("frame of unknown critical kind %d", f.kind)
	case f.len > limit:
		return fmt.Errorf("collector's frame of %d bytes, limit %d", f.len, limit)
	}
	return nil
}

// checkSum checks the frame's checksum; sum is the payload's checksum.
func (f frame) checkSum(sum uint32, head *[headBytes]byte) error {
	if crc32.Update(sum, castagnoliTable, head[:24]) != f.sum {
		return fmt.Errorf("frame of kind %d has a wrong checksum", f.kind)
	}
	return nil
}

func skipPayload(from io.Reader, f frame, head *[headBytes]byte) error {
	sum := crc32.New(castagnoliTable)
	if _, err := io.CopyN(sum, from, int64(f.len)); err != nil {
		return err
	}
	return f.checkSum(sum.Sum32(), head)
}
