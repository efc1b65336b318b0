package journal

import (
	"os"
	"sync"
	"time"
)

// registry has the files that this process has open, by their os.FileInfo and not by
// their names. Locks between processes may have no effect within one.
type registry struct {
	mu   sync.Mutex
	open []*holding
}

// holding is an open file: open once for writing, or any number of times for reading.
type holding struct {
	info    os.FileInfo
	readers int // zero: open for writing
}

var opened registry

// claim registers the file as open and returns true, unless it is open in a way that
// excludes that.
func (r *registry) claim(info os.FileInfo, shared bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.open {
		if !os.SameFile(h.info, info) {
			continue
		}
		if !shared || h.readers == 0 {
			return false
		}
		h.readers++
		return true
	}
	h := &holding{info: info}
	if shared {
		h.readers = 1
	}
	r.open = append(r.open, h)
	return true
}

// release undoes claim.
func (r *registry) release(info os.FileInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, h := range r.open {
		if !os.SameFile(h.info, info) {
			continue
		}
		if h.readers--; h.readers <= 0 {
			r.open = append(r.open[:i], r.open[i+1:]...)
		}
		return
	}
}

// lockPause is how long to wait between tries for a lock, at most.
const lockPause = 20 * time.Millisecond

// lock takes the lock of an open file. After timeout it fails with a [*LockedError].
func lock(f *os.File, path string, shared bool, timeout time.Duration) (release func(), err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, lockPause) {
		here := !opened.claim(info, shared)
		if !here {
			ok, err := tryLock(f, shared)
			if ok {
				return func() { opened.release(info) }, nil
			}
			opened.release(info)
			if err != nil {
				return nil, err
			}
		}
		if waited := time.Since(start); waited >= timeout {
			return nil, &LockedError{Path: path, Here: here, Waited: waited.Round(time.Millisecond)}
		}
		time.Sleep(pause)
	}
}
