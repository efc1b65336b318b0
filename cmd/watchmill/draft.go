package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// draft is a file in the making. It stands beside the one that it is to replace,
// which stays as it is until the draft is whole.
type draft struct {
	file *os.File
	// target is what the draft replaces; "" if there is nothing to replace, since
	// file is a pipe or a device, which is written to as it is.
	target string
}

// newDraft begins a file that is to have that name. Errors: those of opening it
// for writing, or of there being no place beside it.
func newDraft(name string) (*draft, error) {
	if followed, err := filepath.EvalSymlinks(name); err == nil {
		name = followed // what a link leads to is replaced, and not the link
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

// draftOf creates the draft of a regular file, with a name that nothing has yet.
func draftOf(target string, perm fs.FileMode) (*draft, error) {
	name := fmt.Sprintf("%s.%08x.tmp", target, rand.Uint32())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	var at *fs.PathError
	if errors.As(err, &at) {
		at.Path = target // the name that people know
	}
	if err != nil {
		return nil, err
	}
	return &draft{file: file, target: target}, nil
}

// publish makes the draft what it is to be. Nothing can be written any more.
func (d *draft) publish() error {
	if err := d.file.Close(); err != nil || d.target == "" {
		return err
	}
	return os.Rename(d.file.Name(), d.target)
}

// discard leaves everything as it was, if the draft has not been published.
func (d *draft) discard() {
	d.file.Close()
	if d.target != "" {
		os.Remove(d.file.Name()) // which is not there if it was published
	}
}
