// Package draft writes files that are complete or not there: a draft beside a file takes its
// place once it is whole.
//
//	New ──▶ Write ... ──▶ Publish   the file is replaced
//	              └─────▶ Discard   nothing has changed
package draft

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Draft is an incomplete file, next to the one that it replaces when it is complete. Until
// then that one does not change.
type Draft struct {
	file *os.File
	// target is the file that the draft replaces; "" if file is a pipe or a device,
	// which is written directly.
	target string
}

// New begins a draft of the named file. Errors: those of opening the file for writing, and of
// creating another next to it.
func New(name string) (*Draft, error) {
	if followed, err := filepath.EvalSymlinks(name); err == nil {
		name = followed // the target of a link is replaced, not the link
	}
	old, err := os.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Of(name, 0o666)
	}
	if err != nil {
		return nil, err
	}
	info, err := old.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return &Draft{file: old}, nil
	}
	if err := errors.Join(err, old.Close()); err != nil {
		return nil, err
	}
	return Of(name, info.Mode().Perm())
}

// Of begins the draft of a regular file with these permissions.
func Of(target string, perm fs.FileMode) (*Draft, error) {
	name := fmt.Sprintf("%s.%08x.tmp", target, rand.Uint32())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	var at *fs.PathError
	if errors.As(err, &at) {
		at.Path = target // the name that the user knows
	}
	if err != nil {
		return nil, err
	}
	return &Draft{file: file, target: target}, nil
}

// Write writes to the draft.
func (d *Draft) Write(p []byte) (int, error) { return d.file.Write(p) }

// Direct reports whether the file is a pipe or a device, which is written directly.
func (d *Draft) Direct() bool { return d.target == "" }

// Sync waits until what was written is on disk.
func (d *Draft) Sync() error { return d.file.Sync() }

// Publish closes the draft and replaces the file by it.
func (d *Draft) Publish() error {
	if err := d.file.Close(); err != nil || d.target == "" {
		return err
	}
	return os.Rename(d.file.Name(), d.target)
}

// Discard removes the draft, if it has not been published.
func (d *Draft) Discard() {
	d.file.Close()
	if d.target != "" {
		os.Remove(d.file.Name()) // fails if the draft was published
	}
}
