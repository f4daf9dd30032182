// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// seeds returns the seeds of random lives, from 1 to last: every third one, or all with TC_FULL=1 (`make soak`).
func seeds(last int64) (chosen []int64) {
	step := int64(3)
	if os.Getenv("TC_FULL") != "" {
		step = 1
	}
	for seed := int64(1); seed <= last; seed += step {
		chosen = append(chosen, seed)
	}
	return chosen
}

// life is a program with a spool on disk. The test acts as its writer, its sender and the collector, and ends the program.
type life struct {
	t      *testing.T
	dir    string
	spool  *spool
	disk   *disk
	there  *taker
	way    []granted // sent, and not arrived yet
	gen    uint64
	chance *rand.Rand
	batch  []byte
	isFast bool // the program writes more than is sent
	logged []string
}

func newLife(t *testing.T, seed int64, diskBytes uint64) *life {
	l := &life{t: t, dir: t.TempDir(), spool: newSpool(spoolBytesMin), there: newTaker(t), gen: 1, chance: rand.New(rand.NewSource(seed)), batch: make([]byte, 60000)}
	l.chance.Read(l.batch)
	s := settings{spoolDir: l.dir, spoolDirBytes: 2 * diskBytes, service: "shop", instance: "a:1"}
	l.disk = newDisk(s, l.spool, func(_ int, text string) { l.logged = append(l.logged, text) })
	l.disk.begin([16]byte{1, byte(seed), byte(seed >> 8)}, 7)
	if !l.disk.isOn {
		t.Fatalf("no files: %v", l.logged)
	}
	l.spool.putHeader([]byte("go 1.26 trace\x00\x00\x00"))
	return l
}

func (l *life) put(batches int) {
	for ; batches > 0; batches-- {
		l.spool.put(l.gen, l.batch[:1+l.chance.Intn(len(l.batch))])
	}
}

func (l *life) produced() uint64 {
	l.t.Helper()
	l.spool.checkBooks(l.t)
	return l.spool.count().produced.batches
}

func (l *life) flush() {
	l.disk.due = time.Time{}
	l.disk.flush(flushAll)
}

// send flushes, grants and sends, as the sender does.
func (l *life) send(bytes int) {
	l.disk.flush(flushAll)
	g, _ := l.spool.grant(uint64(bytes))
	l.disk.note()
	if g.bytes > 0 {
		l.way = append(l.way, g)
		l.spool.wrote(g.seq)
	}
}

func (l *life) arrive() {
	for _, g := range l.way {
		l.there.take(g)
	}
	l.way = nil
}

// sendAll sends and acknowledges all that may be sent, `rounds` times.
func (l *life) sendAll(rounds int) {
	l.t.Helper()
	for ; rounds > 0; rounds-- {
		l.flush()
		l.send(1 << 20)
		l.arrive()
		if err := l.spool.ack(l.there.seq); err != nil {
			l.t.Fatal(err)
		}
	}
}

// step takes one random step in a program's life.
func (l *life) step() {
	l.t.Helper()
	switch l.chance.Intn(8) {
	case 0:
		l.spool.end()
		l.gen++
	case 1, 2, 3:
		if l.isFast && l.chance.Intn(4) > 0 {
			l.put(3)
			return
		}
		l.send(l.chance.Intn(400000))
		if len(l.way) > 0 && l.chance.Intn(2) == 0 { // some of it arrives before the connection breaks
			l.there.takeSome(l.way[0], l.chance.Intn(8))
			l.resume()
		}
	case 4:
		l.arrive()
		if l.there.seq > l.spool.ackedSeq {
			if err := l.spool.ack(l.spool.ackedSeq + uint64(l.chance.Int63n(int64(l.there.seq-l.spool.ackedSeq)+1))); err != nil {
				l.t.Fatal(err)
			}
		}
	default:
		l.put(l.chance.Intn(4))
	}
}

func (l *life) resume() {
	l.t.Helper()
	l.way = nil
	if err := l.spool.resume(l.there.seq); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) name() string { return hex.EncodeToString(l.disk.state.stream[:]) }

// die ends the process: its locks are released, and the files stay as they are.
func (l *life) die() {
	l.disk.dir.leave()
	l.spool, l.way = nil, nil
}

// inherit takes the files over, as a successor does: the spool is loaded from them.
func (l *life) inherit() (*recovery, error) {
	l.t.Helper()
	r := newRecovery(settings{spoolDir: l.dir, service: "shop"}, nil)
	if !r.isOurs(l.name()) || r.state.instance != "a:1" || r.state.stream != l.disk.state.stream {
		l.t.Fatalf("cannot be taken: %+v", r.state)
	}
	var err error
	l.spool, err = load(&r.dir, &r.state)
	if e := r.announce(l.spool); e != nil {
		l.t.Fatal(e)
	}
	return r, err
}

// deliver sends and acknowledges all records.
func (l *life) deliver() {
	l.t.Helper()
	l.resume()
	drain(l.t, l.spool, l.there)
}

// Whatever the program did, and whenever it died: the collector gets each record that was on disk once and unchanged, and the
// counts add up.
func TestAProgramWithASpoolOnDiskDiesAtAnyMoment(t *testing.T) {
	var lost, abandoned uint64
	tried := seeds(150)
	for _, seed := range tried {
		l := newLife(t, seed, 64<<20)
		l.isFast = seed%2 == 0
		for steps := l.chance.Intn(200); steps > 0; steps-- {
			l.step()
		}
		isFinished := l.chance.Intn(4) == 0
		if isFinished {
			l.spool.end()
			l.spool.finish()
		}
		l.flush()
		if l.spool.keptRecords != l.spool.records {
			t.Fatalf("seed %d: %d of %d records are on disk: %v", seed, l.spool.keptRecords, l.spool.records, l.logged)
		}
		had := l.produced()
		if !isFinished {
			l.put(l.chance.Intn(3)) // these are not on disk
		}
		l.die()
		r, err := l.inherit()
		if err != nil || l.produced() != had {
			t.Fatalf("seed %d: %d of %d batches: %v", seed, l.produced(), had, err)
		}
		for heirs := l.chance.Intn(3); heirs > 0; heirs-- { // a successor that dies after some records have arrived
			l.resume()
			g, _ := l.spool.grant(uint64(l.chance.Intn(1 << 20)))
			l.there.takeSome(g, l.chance.Intn(20))
			r.dir.leave()
			if r, err = l.inherit(); err != nil {
				t.Fatal(err)
			}
		}
		l.deliver()
		if l.there.isClosed != isFinished || l.there.got.batches+l.there.lost.batches != had {
			t.Fatalf("seed %d: closed %v, got %+v, lost %+v of %d", seed, l.there.isClosed, l.there.got, l.there.lost, had)
		}
		lost += l.there.lostGens
		abandoned += l.there.abandoned
		r.dir.remove()
		if left, _ := os.ReadDir(l.dir); len(left) != 0 {
			t.Fatalf("seed %d: left %v", seed, left)
		}
	}
	if lost < uint64(len(tried)/3) || abandoned < uint64(len(tried)/15) {
		t.Errorf("%d generations lost, %d abandoned only", lost, abandoned)
	}
}

// A disk that is full at times: a record that was once on it arrives, from the program or from its successor.
func TestRecordsOnADiskThatIsFullAtTimesAreKept(t *testing.T) {
	full, went, tried := 0, 0, seeds(100)
	for _, seed := range tried {
		l, vouched := newLife(t, seed, 64<<20), uint64(0)
		for steps := l.chance.Intn(200); steps > 0; steps-- {
			if l.chance.Intn(4) == 0 {
				l.disk.dir.bytesMax = uint64(l.chance.Intn(1 << 20))
			}
			if l.chance.Intn(2) == 0 {
				l.disk.due = time.Time{}
			}
			l.step()
			if l.disk.isFull {
				full++
			}
			if l.disk.isOn && l.spool.keptRecords == l.spool.records {
				vouched = l.produced()
			}
		}
		lost := l.spool.count().lost.batches // a loss that was not reported is forgotten with the program
		l.die()
		if _, err := os.Stat(filepath.Join(l.dir, l.name())); err != nil {
			went++
			if l.there.got.batches+l.there.lost.batches+lost < vouched {
				t.Fatalf("seed %d: got %+v, lost %+v of %d", seed, l.there.got, l.there.lost, vouched)
			}
			continue
		}
		r, err := l.inherit()
		had := l.produced()
		if err != nil || had < vouched {
			t.Fatalf("seed %d: %d of %d batches: %v", seed, had, vouched, err)
		}
		l.deliver()
		if l.there.got.batches+l.there.lost.batches < had {
			t.Fatalf("seed %d: got %+v, lost %+v of %d", seed, l.there.got, l.there.lost, had)
		}
		r.dir.leave()
	}
	if full < 5*len(tried) || went == 0 {
		t.Errorf("full at %d steps, went %d times", full, went)
	}
}

// No flipped bit can change what is sent: sending ends where the files are damaged.
func TestDamagedFilesAreSentUpToThere(t *testing.T) {
	noticed, flips := 0, seeds(400)
	for _, seed := range flips {
		l := newLife(t, seed, 64<<20)
		for ; l.gen <= 3; l.gen++ {
			l.put(1 + l.chance.Intn(3))
			l.spool.end()
		}
		l.flush()
		had := l.produced()
		l.die()
		files, err := os.ReadDir(filepath.Join(l.dir, l.name()))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(l.dir, l.name(), files[l.chance.Intn(len(files))].Name())
		bytes, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes[l.chance.Intn(min(len(bytes), 1+l.chance.Intn(len(bytes))))] ^= 1 << l.chance.Intn(8)
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		r := newRecovery(settings{spoolDir: l.dir, service: "shop"}, nil)
		if state, err := r.dir.take(l.name()); err != nil {
			noticed++
		} else {
			l.spool, err = load(&r.dir, &state)
			l.deliver()
			if err != nil {
				noticed++
			} else if l.there.got.batches != had {
				t.Fatalf("seed %d, %s: %d of %d batches, and no error", seed, path, l.there.got.batches, had)
			}
		}
		r.dir.leave()
	}
	if noticed < len(flips)/2 {
		t.Errorf("%d of %d noticed", noticed, len(flips))
	}
}

// A disk that fails for a while, or a lack of descriptors, is no reason to delete the files.
func TestFilesThatCannotBeReadNowAreKept(t *testing.T) {
	for _, name := range []string{runName(1), runName(2), runName(3), stateName} {
		l := newLife(t, 1, 64<<20)
		for ; l.gen <= 2; l.gen++ {
			l.put(3)
			l.spool.end()
		}
		l.flush()
		had := l.produced()
		l.die()
		path := filepath.Join(l.dir, l.name(), name)
		if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)); err != nil { // opens, but cannot be read
			t.Fatal(err)
		}
		lines, begun := make(chan line, 10), make(chan struct{})
		close(begun)
		newRecovery(settings{spoolDir: l.dir, spoolDirBytes: 128 << 20, service: "shop"}, lines).run(begun)
		if name != stateName && !strings.Contains((<-lines).text, "cannot be read now, and stays unsent") {
			t.Errorf("%s: nothing is said", name)
		}
		if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
			t.Fatal(err)
		}
		r, err := l.inherit()
		if err != nil {
			t.Fatal(err)
		}
		if l.deliver(); l.there.got.batches != had {
			t.Errorf("%s: %d of %d batches", name, l.there.got.batches, had)
		}
		r.dir.leave()
	}
}

// The limit of the files is less than the spool's, and a little more is used: what a block needs beside its frames. A LOSS
// needs no room, so it never waits for room. Else nothing more could be sent.
func TestALossIsWrittenWhereTheFilesAreFull(t *testing.T) {
	for extra := uint64(0); extra <= 3000; extra += 500 {
		l := newLife(t, 1, 16*61440+4096+58500+extra)
		l.flush()
		l.sendAll(50)
		l.spool.limit = 2 << 20 / pageBytes
		l.spool.mapping = newMapping(l.spool.limit)
		for n := 0; n < 200 && !(l.disk.isFull && l.spool.count().lostGenerations >= 2); n++ {
			l.spool.put(l.gen, l.batch[:60000-headBytes])
			l.spool.end()
			l.gen++
			l.spool.settled() // a wait checks this, and frees the acknowledged records at the front
			l.flush()
		}
		l.sendAll(30)
		if l.spool.settled() != l.spool.records {
			t.Errorf("%d more: %d of %d records, full %v, %d of %d bytes in files", extra, l.spool.settled(), l.spool.records, l.disk.isFull,
				l.disk.dir.bytes, l.disk.dir.bytesMax)
		}
	}
}

// The successor's connection breaks after more records have arrived than the program had sent. The successor must know that
// it has sent these itself.
func TestAnHeirWhoseConnectionBreaksGoesOn(t *testing.T) {
	l := newLife(t, 1, 64<<20)
	l.put(12)
	l.flush()
	had := l.produced()
	l.die()
	if _, err := l.inherit(); err != nil {
		t.Fatal(err)
	}
	l.resume()
	g, _ := l.spool.grant(1 << 20)
	l.there.takeSome(g, 4)
	l.deliver()
	if l.there.got.batches != had || l.spool.isSuperseded {
		t.Errorf("%d of %d batches", l.there.got.batches, had)
	}
}

// Either the process continued without its files, and could not even delete them, or a file is damaged but the collector has
// its records. In both cases there is nothing to send.
func TestFilesOfWhichTheCollectorHasMoreAreNotSent(t *testing.T) {
	for _, isDamaged := range []bool{false, true} {
		l := newLife(t, 1, 64<<20)
		for ; l.gen <= 2; l.gen++ {
			l.put(3)
			l.spool.end()
		}
		durable := uint64(2)
		if l.flush(); isDamaged {
			l.send(math.MaxInt32)
			l.arrive()
			durable = l.there.seq
		}
		l.die()
		if isDamaged && os.Truncate(filepath.Join(l.dir, l.name(), runName(2)), 10) != nil {
			t.Fatal("no file of the first generation")
		}
		if _, err := l.inherit(); isDamaged != errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		var no refusal
		if err := l.spool.resume(durable); !errors.As(err, &no) || !no.forGood || !strings.Contains(no.text, "the spool on disk knows of") {
			t.Errorf("resume: %v", err)
		}
		if !l.spool.isSuperseded {
			t.Error("is not superseded")
		}
	}
}

// Names as streams have them, but not made by the agent: a file, a link to a folder, a folder that is not empty.
func TestOnlyEmptyFoldersAreTakenAway(t *testing.T) {
	root := t.TempDir()
	name := func(digit string) string { return filepath.Join(root, strings.Repeat(digit, 32)) }
	for _, err := range []error{
		os.WriteFile(name("1"), []byte("mine"), 0o600), os.Mkdir(filepath.Join(root, "else"), 0o700), os.Symlink("else", name("2")),
		os.MkdirAll(filepath.Join(name("3"), "more"), 0o700), os.Mkdir(name("4"), 0o700),
	} {
		if err != nil {
			t.Skip(err) // no links here
		}
	}
	begun := make(chan struct{})
	close(begun)
	newRecovery(settings{spoolDir: root, spoolDirBytes: 1 << 20, service: "shop"}, make(chan line, 10)).run(begun)
	for digit, stays := range map[string]bool{"1": true, "2": true, "3": true, "4": false} {
		if _, err := os.Lstat(name(digit)); (err == nil) != stays {
			t.Errorf("%s: %v", name(digit), err)
		}
	}
}

func TestASpoolDirThatCannotBe(t *testing.T) {
	certs := certificates(t)
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{filepath.Join(t.TempDir(), "no", "such"): "spool_dir: making ", file: "spool_dir: "}
	if runtime.GOOS != "windows" { // there a folder has its parent's rights
		wrong[open] = "spool_dir: others may write to "
	}
	for dir, words := range wrong {
		cfg := config("127.0.0.1:9", certs)
		cfg.SpoolDir = dir
		if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	cfg := config("127.0.0.1:9", certs)
	cfg.SpoolDir, cfg.Record = t.TempDir(), time.Minute
	if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "keeps nothing on disk") {
		t.Errorf("with Record: %v", err)
	}
	cfg.Record, cfg.SpoolDirBytes = 0, 1000
	if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), "spool_dir_bytes is below 2097152") {
		t.Errorf("with few bytes: %v", err)
	}
}

// A disk that is slower than the trace: a flush ends, although the files never have all records.
func TestAFlushEndsWhereTheWriterIsFaster(t *testing.T) {
	l := newLife(t, 1, 64<<20)
	for l.spool.count().spooled.bytes < 2*flushGrant {
		l.put(1)
	}
	if isMore := l.disk.flush(flushGrant); !isMore || l.spool.keptRecords == l.spool.records {
		t.Error("one flush took all there was")
	}
	var gens atomic.Uint64
	var isEnough atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !isEnough.Load() {
			l.spool.put(gens.Add(1), l.batch)
			l.spool.end()
		}
	}()
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for rounds := 0; rounds < 5; rounds++ {
			for before := gens.Load(); gens.Load() == before; { // there is something to flush
				runtime.Gosched()
			}
			l.disk.flush(flushGrant)
		}
	}()
	<-flushed // while the writer continues
	isEnough.Store(true)
	<-ended
	l.disk.end()
	had := l.produced()
	l.die()
	if _, err := l.inherit(); err != nil || l.produced() != had {
		t.Errorf("%d of %d batches: %v", l.produced(), had, err)
	}
}

// A writer that is much faster than the disk: some runs are dropped before they have a file.
func TestRunsWithoutAFileAreNotLookedFor(t *testing.T) {
	l := newLife(t, 1, 64<<20)
	l.put(3)
	l.flush()
	had := l.disk.dir.bytes
	l.disk.dir.drop(l.disk.dir.runIDMax+1, math.MaxUint64-1)
	if l.disk.dir.bytes != had || had == 0 {
		t.Errorf("%d of %d bytes", l.disk.dir.bytes, had)
	}
	l.disk.dir.drop(0, math.MaxUint64-1)
	if l.disk.dir.bytes != 0 {
		t.Errorf("%d bytes are left", l.disk.dir.bytes)
	}
}

// Run numbers that form a circle, or a pipe with the name of a run: the search for the next run must end.
func TestRunsThatHaveNoEndAreDamaged(t *testing.T) {
	l := newLife(t, 1, 64<<20)
	l.put(3)
	l.flush()
	l.die()
	r := newRecovery(settings{spoolDir: l.dir, service: "shop"}, nil)
	if !r.isOurs(l.name()) {
		t.Fatal("cannot be taken")
	}
	for _, image := range []runImage{{id: 1, covers: math.MaxUint64, kind: runLoss}, {id: 0, covers: 0, kind: runLoss}} {
		if err := os.WriteFile(filepath.Join(l.dir, l.name(), runName(image.id)), image.encode(r.state.salt), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := load(&r.dir, &r.state); !errors.Is(err, errDamaged) {
		t.Errorf("load: %v", err)
	}
}
