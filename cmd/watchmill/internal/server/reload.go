package server

import (
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// againAfter is how long files that could not be read are left, although they have not changed since.
const againAfter = time.Second

// reloaded is what files contain. They are read again when they have changed, since certificates
// are renewed, and tokens withdrawn, while the server runs. The content that was read last stays
// if the files cannot be read then, which is tried again, or if one is not a regular file: a pipe can
// be read only once.
type reloaded[T any] struct {
	files []string
	read  func() (T, error)
	log   *slog.Logger

	value atomic.Pointer[T]

	mu   sync.Mutex    // held during a look
	seen []fs.FileInfo // nil for a file that was not there
	// failed is when the files could not be read as they are now, zero if they could.
	failed time.Time
}

// load reads the files for the first time.
func load[T any](log *slog.Logger, read func() (T, error), files ...string) (*reloaded[T], error) {
	r := &reloaded[T]{files: files, read: read, log: log}
	r.seen = r.look() // before they are read, so that a change meanwhile is seen
	value, err := read()
	r.value.Store(&value)
	return r, err
}

// get returns what the files contain, after a look at whether they have changed. While another call
// looks, it does not wait: the disk may hang.
func (r *reloaded[T]) get() T {
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		r.refresh()
	}
	return *r.value.Load()
}

// refresh reads the files again if they have changed, or could not be read, which may have been for want of file
// descriptors. The caller holds r.mu.
func (r *reloaded[T]) refresh() {
	now := r.look()
	changed := !r.unchanged(now)
	if !changed && (r.failed.IsZero() || time.Since(r.failed) < againAfter) {
		return
	}
	r.seen, r.failed = now, time.Time{}
	if slices.ContainsFunc(now, func(info fs.FileInfo) bool { return info != nil && !info.Mode().IsRegular() }) {
		return
	}
	names := strings.Join(r.files, ", ")
	value, err := r.read()
	if err != nil {
		r.failed = time.Now()
	}
	switch {
	case err != nil && !changed: // the log has it
		return
	case err != nil:
		r.log.Error("files have changed and cannot be used: what they contained before stays in use", "files", names, "error", err)
		return
	}
	r.log.Info("files have changed and were read again", "files", names)
	r.value.Store(&value)
}

// look returns the descriptions of the files.
func (r *reloaded[T]) look() []fs.FileInfo {
	all := make([]fs.FileInfo, len(r.files))
	for i, name := range r.files {
		all[i], _ = os.Stat(name) // that it is not there is a change, too
	}
	return all
}

// unchanged reports whether the files are those that were seen last.
func (r *reloaded[T]) unchanged(now []fs.FileInfo) bool {
	for i, info := range now {
		before := r.seen[i]
		if info == nil && before == nil {
			continue
		}
		if info == nil || before == nil || !os.SameFile(info, before) || info.Size() != before.Size() || !info.ModTime().Equal(before.ModTime()) {
			return false
		}
	}
	return true
}
