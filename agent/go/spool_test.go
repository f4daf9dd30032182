// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand"
	"testing"
	"time"
)

// taker is a collector that checks each record, and their order, by docs/PROTOCOL.md.
type taker struct {
	t         *testing.T
	seq       uint64
	sums      []uint32 // of each record's frame, by number
	gen       uint64   // the open generation
	batches   count    // of this generation
	sum       uint32
	got, lost count
	whole     map[uint64]bool
	lostGens  uint64
	abandoned uint64
	isClosed  bool
	hasHeader bool
	lastGen   uint64
}

func newTaker(t *testing.T) *taker { return &taker{t: t, sums: []uint32{0}, whole: map[uint64]bool{}} }

// take reads the frames of what was granted.
func (k *taker) take(g granted) { k.takeSome(g, math.MaxInt) }

// takeSome reads the first `records` of them; the connection is cut after these.
func (k *taker) takeSome(g granted, records int) {
	k.t.Helper()
	var all []byte
	for _, part := range g.parts {
		all = append(all, part...)
	}
	for ; len(all) > 0 && records > 0; records-- {
		f := readWaiting((*[headBytes]byte)(all))
		payload := all[headBytes : headBytes+int(f.len)]
		sum := binary.LittleEndian.Uint32(all[24:])
		if crc32.Update(crc32.Checksum(payload, castagnoliTable), castagnoliTable, all[:24]) != sum {
			k.t.Fatalf("record %d has a wrong checksum", f.seq)
		}
		switch {
		case f.seq == k.seq+1:
			k.seq, k.sums = f.seq, append(k.sums, sum)
			k.record(f, payload)
		case f.seq > k.seq || f.seq == 0:
			k.t.Fatalf("record %d after %d", f.seq, k.seq)
		case k.sums[f.seq] != sum:
			k.t.Fatalf("record %d is another one", f.seq)
		}
		all = all[headBytes+int(f.len):]
	}
}

func (k *taker) record(f frame, payload []byte) {
	k.t.Helper()
	if k.isClosed || !k.hasHeader && f.kind != kindHeader {
		k.t.Fatalf("record %d of kind %s, closed %v", f.seq, kindNames[f.kind], k.isClosed)
	}
	switch f.kind {
	case kindHeader:
		k.hasHeader = true
	case kindBatch:
		if k.gen == 0 {
			k.gen, k.batches, k.sum = f.gen, count{}, 0
			if f.gen <= k.lastGen {
				k.t.Fatalf("generation %d after %d", f.gen, k.lastGen)
			}
		}
		k.batches.add(count{1, uint64(f.len)})
		k.got.add(count{1, uint64(f.len)})
		k.sum = crc32.Update(k.sum, castagnoliTable, binary.LittleEndian.AppendUint32(nil, crc32.Checksum(payload, castagnoliTable)))
	case kindGenerationEnd:
		k.end(f, payload)
	case kindLoss:
		k.loss(payload)
	case kindClose:
		k.isClosed = true
	}
}

func (k *taker) end(f frame, payload []byte) {
	k.t.Helper()
	var of count
	var sum uint32
	if err := eachField(payload, func(field int, number uint64, _ []byte) {
		switch field {
		case 1:
			of.batches = number
		case 2:
			of.bytes = number
		}
	}); err != nil {
		k.t.Fatal(err)
	}
	for at := 0; at+5 <= len(payload); at++ { // the only field of a fixed size
		if payload[at] == 3<<3|wireFixed32 {
			sum = binary.LittleEndian.Uint32(payload[at+1:])
			if sum == k.sum {
				break
			}
		}
	}
	if f.gen != k.gen || of != k.batches || sum != k.sum {
		k.t.Fatalf("end of generation %d with %+v, %x: here are %d, %+v, %x", f.gen, of, sum, k.gen, k.batches, k.sum)
	}
	k.whole[k.gen] = true
	k.lastGen, k.gen = k.gen, 0
}

func (k *taker) loss(payload []byte) {
	k.t.Helper()
	var n [10]uint64
	if err := eachField(payload, func(field int, number uint64, _ []byte) { n[field] = number }); err != nil {
		k.t.Fatal(err)
	}
	first, last, sent := n[1], n[2], count{n[8], n[9]}
	if k.gen != 0 && (first != k.gen || sent != k.batches) || k.gen == 0 && sent != (count{}) {
		k.t.Fatalf("loss of %d to %d, sent %+v: open is %d with %+v", first, last, sent, k.gen, k.batches)
	}
	if first <= k.lastGen || last < first || n[5] == 0 {
		k.t.Fatalf("loss of %d to %d after %d, reason %d", first, last, k.lastGen, n[5])
	}
	k.lost.add(count{n[3], n[4]})
	k.lost.sub(sent)
	k.lostGens += last - first + 1
	if k.gen != 0 {
		k.abandoned++
	}
	k.lastGen, k.gen = last, 0
}

func (s *spool) checkBooks(t *testing.T) {
	t.Helper()
	c := s.count()
	sum := c.acked
	sum.add(c.lost)
	sum.add(c.spooled)
	if c.produced != sum {
		t.Fatalf("produced %+v, acked %+v, lost %+v, spooled %+v", c.produced, c.acked, c.lost, c.spooled)
	}
	runs := 0
	for r := s.first; r != nil; r = r.next {
		runs++
	}
	if runs != s.runs || runs > s.runsMax {
		t.Fatalf("%d runs, %d are counted, %d at most", runs, s.runs, s.runsMax)
	}
	if s.made > s.limit || len(s.pages) > s.made {
		t.Fatalf("%d pages made, %d free, limit %d", s.made, len(s.pages), s.limit)
	}
}

// A writer, a sender and a collector, whose connection is sometimes lost, act in any order. All that was written arrives in
// its place or is reported as lost, and the counts add up.
func TestASpoolLosesNothingUnsaid(t *testing.T) {
	var tried [4]uint64
	for _, seed := range seeds(40) {
		chance := rand.New(rand.NewSource(seed))
		s, k := newSpool(spoolBytesMin), newTaker(t)
		s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
		batch := make([]byte, batchBytesMax)
		chance.Read(batch)
		gen, isOpen := uint64(1), false
		for turn := 0; turn < 2000; turn++ {
			isMute := turn/300%2 == 1 && chance.Intn(50) > 0 // a collector without acks
			isSlow := turn/200%2 == 1 && chance.Intn(20) > 0
			isLong := turn/500%2 == 1 && chance.Intn(30) > 0 // a generation
			switch n := chance.Intn(20); {
			case n < 9:
				s.put(gen, batch[:1+chance.Intn(40000)])
				isOpen = true
			case n < 11 && isOpen && !isLong:
				s.end()
				gen, isOpen = gen+1, false
			case n < 16 && !isSlow:
				g, _ := s.grant(uint64(chance.Intn(300000)))
				if g.bytes > 0 {
					k.take(g)
					s.wrote(g.seq)
				}
			case n < 18 && k.seq > s.ackedSeq && !isMute:
				if err := s.ack(s.ackedSeq + uint64(chance.Int63n(int64(k.seq-s.ackedSeq)+1))); err != nil {
					t.Fatal(err)
				}
			case n == 18 && chance.Intn(10) == 0: // another connection
				if err := s.resume(s.ackedSeq + uint64(chance.Int63n(int64(k.seq-s.ackedSeq)+1))); err != nil {
					t.Fatal(err)
				}
			case n == 19 && seed%2 == 0 && s.ackedSeq > 0 && chance.Intn(20) == 0: // another one: the collector forgot all
				if err := s.resume(s.ackedSeq - 1); !errors.Is(err, errForgot) {
					t.Fatalf("resume: %v", err)
				}
				s.restart()
				k = newTaker(t)
				if err := s.resume(0); err != nil {
					t.Fatal(err)
				}
			}
			s.checkBooks(t)
		}
		if isOpen {
			s.end()
		}
		s.finish()
		drain(t, s, k)
		c := s.count()
		if !k.isClosed || k.got.batches+k.lost.batches != c.produced.batches || k.got.bytes+k.lost.bytes != c.produced.bytes {
			t.Fatalf("seed %d: got %+v, lost %+v of %+v", seed, k.got, k.lost, c.produced)
		}
		if c.reported != c.produced || uint64(len(k.whole)) != c.ackedGenerations || k.lostGens != c.lostGenerations {
			t.Fatalf("seed %d: %d whole, %d lost: %+v", seed, len(k.whole), k.lostGens, c)
		}
		tried[0] += c.ackedGenerations
		tried[1] += c.lostGenerations
		tried[2] += c.resentBatches
		tried[3] += k.abandoned
	}
	for what, n := range tried {
		if n < 20 {
			t.Errorf("%d times only: generations acknowledged, lost, batches sent again, generations abandoned [%d]", n, what)
		}
	}
}

// drain sends and acknowledges all records.
func drain(t *testing.T, s *spool, k *taker) {
	t.Helper()
	for !s.isDone() {
		g, _ := s.grant(1 << 20)
		k.take(g)
		s.wrote(g.seq)
		if err := s.ack(k.seq); err != nil {
			t.Fatal(err)
		}
		s.checkBooks(t)
	}
}

// If a collector lost its data, it gets the rest as a new stream, with a LOSS for the data that is gone.
func TestAStreamBeginsAnewWhereItsCollectorForgot(t *testing.T) {
	for seed := int64(1); seed <= 60; seed++ {
		chance := rand.New(rand.NewSource(seed))
		s, k := newSpool(spoolBytesMin), newTaker(t)
		s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
		batch := make([]byte, batchBytesMax)
		gens := 3 + chance.Intn(8)
		for gen := 1; gen <= gens; gen++ {
			for n := 1 + chance.Intn(6); n > 0; n-- {
				s.put(uint64(gen), batch[:1+chance.Intn(30000)])
				g, _ := s.grant(uint64(chance.Intn(100000)))
				k.take(g)
				s.wrote(g.seq)
			}
			if gen < gens || chance.Intn(2) == 0 {
				s.end()
			}
			if err := s.ack(s.ackedSeq + uint64(chance.Int63n(int64(k.seq-s.ackedSeq)+1))); err != nil {
				t.Fatal(err)
			}
		}
		if s.ackedSeq == 0 {
			continue
		}
		if err := s.resume(s.ackedSeq - 1); !errors.Is(err, errForgot) {
			t.Fatalf("resume: %v", err)
		}
		s.restart()
		s.checkBooks(t)
		k = newTaker(t)
		if err := s.resume(0); err != nil {
			t.Fatal(err)
		}
		s.end()
		s.put(uint64(gens+1), batch[:100])
		s.end()
		s.finish()
		drain(t, s, k)
		c := s.count()
		if k.got.batches+k.lost.batches != c.produced.batches || c.reported != c.produced || !k.whole[uint64(gens+1)] {
			t.Fatalf("seed %d: got %+v, lost %+v of %+v", seed, k.got, k.lost, c)
		}
	}
}

func TestAnAckOfWhatWasNeverSentIsRefused(t *testing.T) {
	s := newSpool(spoolBytesMin)
	s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
	s.put(1, []byte("batch"))
	if err := s.ack(1); err == nil {
		t.Error("of a record without a number")
	}
	g, _ := s.grant(1 << 20)
	if err := s.ack(3); err == nil {
		t.Error("of one behind the last")
	}
	if err := s.ack(2); err != nil || s.ackedSeq != 0 { // the ack came before Write returned
		t.Errorf("%v, acked %d", err, s.ackedSeq)
	}
	s.wrote(g.seq)
	if s.ackedSeq != 2 {
		t.Errorf("acked %d", s.ackedSeq)
	}
}

// A collector that grants credit but acknowledges nothing: the records that report losses are also bounded.
func TestLossesWithoutAcksAreBounded(t *testing.T) {
	s, k := newSpool(spoolBytesMin), newTaker(t)
	s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
	batch := make([]byte, 40000)
	for gen := uint64(1); gen <= 3000; gen++ {
		s.put(gen, batch)
		s.put(gen, batch)
		if gen%3 > 0 { // the others are never sent
			g, _ := s.grant(50000)
			k.take(g)
			s.wrote(g.seq)
		}
		s.end()
		g, _ := s.grant(1 << 20)
		k.take(g)
		s.wrote(g.seq)
		s.checkBooks(t)
	}
	if s.runs < runsMin/2 {
		t.Errorf("%d runs: that was no trial", s.runs)
	}
	s.finish()
	if err := s.ack(k.seq); err != nil {
		t.Fatal(err)
	}
	drain(t, s, k)
	if c := s.count(); k.got.batches+k.lost.batches != c.produced.batches || k.lostGens != c.lostGenerations || c.reported != c.produced {
		t.Errorf("got %+v, lost %+v in %d: %+v", k.got, k.lost, k.lostGens, c)
	}
}

func TestMemoryGoesBackWhenItIsNotInUse(t *testing.T) {
	s, k := newSpool(4<<20), newTaker(t)
	s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
	for i := 0; i < 40; i++ {
		s.put(1, make([]byte, 60000))
	}
	s.end()
	peak := s.made - len(s.pages)
	s.finish()
	drain(t, s, k)
	for i := 0; i < 20; i++ {
		s.trim(false)
	}
	if left := s.made - len(s.cold); peak < 140 || left > 2 {
		t.Errorf("%d pages at most, %d at the end", peak, left)
	}
	if s.put(2, make([]byte, 60000)); s.last.gen != 2 || !bytes.Equal(s.last.pages[0][headBytes:], make([]byte, pageBytes-headBytes)) {
		t.Error("a page that went back is not used again")
	}
}

func TestARecorderForgetsAndLetsOut(t *testing.T) {
	s, k := newSpool(spoolBytesMin), newTaker(t)
	s.record(time.Hour)
	s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
	put := func(gen uint64) {
		for i := 0; i < 4; i++ {
			s.put(gen, make([]byte, 60000))
		}
		s.end()
		s.checkBooks(t)
	}
	for gen := uint64(1); gen <= 30; gen++ {
		put(gen)
	}
	generations, _, forgotten, _ := s.recorded()
	if c := s.count(); c.produced.batches != 0 || generations+forgotten != 30 || generations < 3 {
		t.Fatalf("%d kept, %d forgotten, %+v", generations, forgotten, c)
	}
	if err := s.snap(0, 7); err != nil {
		t.Fatal(err)
	}
	if _, isDone := s.takeSnapped(); isDone {
		t.Fatal("before its moment has passed")
	}
	s.put(31, make([]byte, 100))
	s.end()
	s.put(32, make([]byte, 100)) // is kept again
	for i := 0; i < 40; i++ {
		g, _ := s.grant(1 << 20)
		k.take(g)
		s.wrote(g.seq)
		if err := s.ack(k.seq); err != nil {
			t.Fatal(err)
		}
	}
	done, isDone := s.takeSnapped()
	if !isDone || done.id != 7 || done.firstGen != 31-generations || done.lastGen != 31 || done.generations+done.lostGenerations != generations+1 {
		t.Fatalf("%v %+v of %d", isDone, done, generations)
	}
	if k.lastGen != 31 || k.whole[32] {
		t.Errorf("last is %d", k.lastGen)
	}
	s.end()
	s.finish()
	drain(t, s, k)
	if _, _, forgotten, _ := s.recorded(); !k.isClosed || forgotten != 31-generations {
		t.Errorf("closed %v, forgotten %d", k.isClosed, forgotten)
	}
	for id := uint64(1); id <= snapsMax; id++ {
		s.recorder.asked[id-1] = snap{snapped: snapped{id: id}, ends: 1}
	}
	if err := s.snap(0, 9); !errors.Is(err, errTooManySnaps) {
		t.Errorf("a fifth: %v", err)
	}
}

// A collector that acknowledges nothing until there are as many runs as allowed, and then forgets the stream: everything is
// sent again.
func TestAStreamBeginsAnewAtTheBoundOfRuns(t *testing.T) {
	for _, isFinished := range []bool{true, false} {
		s, k := newSpool(spoolBytesMin), newTaker(t)
		s.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
		send := func() {
			for g, _ := s.grant(1 << 20); g.bytes > 0; g, _ = s.grant(1 << 20) {
				k.take(g)
				s.wrote(g.seq)
			}
		}
		for gen := uint64(1); gen < 400; gen++ {
			s.put(gen, []byte("x"))
			s.end()
			if send(); gen == 2 {
				if err := s.ack(k.seq); err != nil {
					t.Fatal(err)
				}
			}
		}
		if isFinished {
			s.finish()
			send()
		}
		if err := s.resume(1); !errors.Is(err, errForgot) {
			t.Fatalf("resume: %v", err)
		}
		s.restart()
		k = newTaker(t)
		if err := s.resume(0); err != nil {
			t.Fatal(err)
		}
		for rounds := 0; rounds < 3; rounds++ {
			send()
			if err := s.ack(k.seq); err != nil {
				t.Fatal(err)
			}
		}
		if c := s.count(); s.settled() != s.records || k.got.batches+k.lost.batches != c.produced.batches {
			t.Errorf("finished %v: %d of %d records, got %+v, lost %+v of %+v", isFinished, s.settled(), s.records, k.got, k.lost, c.produced)
		}
	}
}
