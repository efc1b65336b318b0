package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// draft is an incomplete file, next to the one that it replaces when it is complete. Until
// then that one does not change.
type draft struct {
	file *os.File
	// target is the file that the draft replaces; "" if file is a pipe or a device,
	// which is written directly.
	target string
}

// newDraft begins a draft of the named file. Errors: those of opening the file for writing,
// and of creating another next to it.
func newDraft(name string) (*draft, error) {
	if followed, err := filepath.EvalSymlinks(name); err == nil {
		name = followed // the target of a link is replaced, not the link
	}
	old, err := os.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return draftOf(name, 0o666)
	}
	if err != nil {
		return nil, err
	}
	info, err := old.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return &draft{file: old}, nil
	}
	if err := errors.Join(err, old.Close()); err != nil {
		return nil, err
	}
	return draftOf(name, info.Mode().Perm())
}

// draftOf creates the draft of a regular file, with an unused name.
func draftOf(target string, perm fs.FileMode) (*draft, error) {
	name := fmt.Sprintf("%s.%08x.tmp", target, rand.Uint32())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	var at *fs.PathError
	if errors.As(err, &at) {
		at.Path = target // the name that the user knows
	}
	if err != nil {
		return nil, err
	}
	return &draft{file: file, target: target}, nil
}

// publish closes the draft and replaces the target by it.
func (d *draft) publish() error {
	if err := d.file.Close(); err != nil || d.target == "" {
		return err
	}
	return os.Rename(d.file.Name(), d.target)
}

// discard removes the draft, if it has not been published.
func (d *draft) discard() {
	d.file.Close()
	if d.target != "" {
		os.Remove(d.file.Name()) // fails if the draft was published
	}
}
