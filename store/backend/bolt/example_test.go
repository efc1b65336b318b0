package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/codec"
)

// cfg is what the examples keep: items, which users get from engine.Config.Schema.
var cfg = bolt.Config{Schema: backendtest.Schema(), FirstRevision: 1}

// inTemporary returns the path of a file that does not exist yet.
func inTemporary() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "state.db"), func() { os.RemoveAll(dir) }
}

// A program that restarts finds its objects, and its watches go on where they
// were.
func Example() {
	ctx := context.Background()
	path, remove := inTemporary()
	defer remove()

	f, _ := bolt.Open(path, bolt.Options{})
	lamps, _ := bolt.New(f, "lamps", cfg)
	hall, _ := lamps.Put(ctx, draft("hall", "off"), nil, backend.PutOptions{})
	checkpoint := hall.Revision
	_, _ = lamps.Put(ctx, draft("hall", "on"), hall, backend.PutOptions{})
	_ = f.Close()

	f, _ = bolt.Open(path, bolt.Options{})
	defer f.Close()
	lamps, _ = bolt.New(f, "lamps", cfg)
	o, err := lamps.Get(ctx, "hall")
	fmt.Println(o.Key, textOf(o), err)

	notified := make(chan struct{}, 1)
	w, _ := lamps.Watch(ctx, backend.WatchOptions{From: checkpoint, Notify: func() { notified <- struct{}{} }})
	defer w.Close()
	for {
		batch, err := w.Next(100)
		if err != nil || len(batch.Events) > 0 {
			fmt.Println(batch.Events, err)
			break
		}
		<-notified
	}
	// Output:
	// hall on <nil>
	// [MODIFIED hall@3] <nil>
}

func ExampleOpen() {
	path, remove := inTemporary()
	defer remove()
	f, err := bolt.Open(path, bolt.Options{MaxBytes: 1 << 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	_, err = bolt.Open(path, bolt.Options{LockTimeout: time.Millisecond})
	fmt.Println(errors.Is(err, backend.ErrLocked))
	// Output: true
}

func ExampleNew() {
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	defer f.Close()
	_, err := bolt.New(f, "lamps", bolt.Config{})
	fmt.Println(err)
	// Output: invalid configuration: Schema has functions missing; give that of the type, such as engine.Config.Schema returns
}

// A snapshot is taken while writers go on; what is restored has revisions of its
// own.
func ExampleRestore() {
	ctx := context.Background()
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	lamps, _ := bolt.New(f, "lamps", cfg)
	hall, _ := lamps.Put(ctx, draft("hall", "on"), nil, backend.PutOptions{})
	var snapshot bytes.Buffer
	_, err := f.Snapshot(ctx, &snapshot)
	fmt.Println(err)
	_ = f.Close()

	_, err = bolt.Restore(ctx, &snapshot, path+".restored", bolt.RestoreOptions{})
	fmt.Println(err)
	f, _ = bolt.Open(path+".restored", bolt.Options{})
	defer f.Close()
	lamps, _ = bolt.New(f, "lamps", cfg)
	o, _ := lamps.Get(ctx, "hall")
	fmt.Println(textOf(o))
	_, err = lamps.Watch(ctx, backend.WatchOptions{From: hall.Revision, Notify: func() {}})
	fmt.Println(errors.Is(err, store.ErrExpired))
	// Output:
	// <nil>
	// <nil>
	// on
	// true
}

// Turning encryption on: what is there is sealed by Rewrite.
func ExampleBackend_Rewrite() {
	ctx := context.Background()
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	defer f.Close()
	lamps, _ := bolt.New(f, "lamps", cfg)
	_, _ = lamps.Put(ctx, draft("hall", "on"), nil, backend.PutOptions{})
	_ = lamps.Close()

	sealed := cfg
	sealed.Sealer, _ = codec.NewAESGCM(codec.Key{ID: "2026-09", Secret: bytes.Repeat([]byte{9}, codec.KeySize)})
	lamps, err := bolt.New(f, "lamps", sealed)
	fmt.Println(err)
	fmt.Println(lamps.Rewrite(ctx))
	// Output:
	// <nil>
	// 1 <nil>
}

func ExampleCheck() {
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	lamps, _ := bolt.New(f, "lamps", cfg)
	_, _ = lamps.Put(context.Background(), draft("hall", "on"), nil, backend.PutOptions{})
	_ = f.Close()

	report, err := bolt.Check(path)
	fmt.Println(report.Records, len(report.Problems), err)
	// Output: 1 0 <nil>
}

// Space that history has left is given back to the file system.
func ExampleShrink() {
	ctx := context.Background()
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	lamps, _ := bolt.New(f, "lamps", cfg)
	large, _ := lamps.Put(ctx, draft("hall", strings.Repeat("on ", 1<<20)), nil, backend.PutOptions{})
	small, _ := lamps.Put(ctx, draft("hall", "on"), large, backend.PutOptions{})
	_ = lamps.Compact(ctx, small.Revision)
	_ = lamps.Close() // which waits until the history is deleted
	_ = f.Close()

	before, after, err := bolt.Shrink(ctx, path)
	fmt.Println(before > 3<<20, after < 1<<20, err)
	// Output: true true <nil>
}

func ExampleDump() {
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	lamps, _ := bolt.New(f, "lamps", cfg)
	_, _ = lamps.Put(context.Background(), draft("hall", "on"), nil, backend.PutOptions{})
	_ = f.Close()

	_, err := bolt.Dump(path, func(r bolt.Record) error {
		fmt.Printf("%s %v %s@%d %s\n", r.Type, r.Event, r.Key, r.Revision, r.Value)
		return nil
	})
	fmt.Println(err)
	// Output:
	// lamps ADDED hall@2 {"Key":"hall","Text":"on"}
	// <nil>
}

// A health check asks whether the file can still be written.
func ExampleFile_Failure() {
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	defer f.Close()
	healthy := func() bool { return f.Failure() == nil }
	fmt.Println(healthy())
	// Output: true
}

func ExampleFile_Info() {
	path, remove := inTemporary()
	defer remove()
	f, _ := bolt.Open(path, bolt.Options{})
	defer f.Close()
	_, _ = bolt.New(f, "lamps", cfg)
	info, err := f.Info()
	fmt.Println(info.Format, info.Timeline, info.Types["lamps"].Revision, err)
	// Output: 1 0 1 <nil>
}
