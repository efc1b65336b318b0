package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// storeCommand has the commands under watchmill store.
type storeCommand struct {
	Check    storeCheckCommand    `cmd:"" help:"Check a file without changing it, and report its contents and errors as JSON."`
	Info     storeInfoCommand     `cmd:"" help:"Describe a file and its contents."`
	Dump     storeDumpCommand     `cmd:"" help:"Print the changes in a file as a trace for watchmill replay, or the newest state."`
	Snapshot storeSnapshotCommand `cmd:"" help:"Write a snapshot of a file, from which restore makes a file."`
	Restore  storeRestoreCommand  `cmd:"" help:"Make a file from a snapshot, on a new timeline."`
	Shrink   storeShrinkCommand   `cmd:"" help:"Replace a file by a copy without unused space."`
	Salvage  storeSalvageCommand  `cmd:"" help:"Discard the damaged records of a file, and the objects whose values are lost with them."`
}

// Help returns the text that --help adds.
func (*storeCommand) Help() string {
	return `A file is one of package store/backend/bolt. No program may have it open for writing while a command uses it. To take snapshots of a file in use, a program calls File.Snapshot, and watchmill serve has --snapshot.

Only shrink and salvage change a file. check, info and dump also take a snapshot.

If check finds damage, there are three remedies:

    dump     prints what can be read of the file; of one that is cut
             off it prints nothing, until a copy of it is extended to the
             size that check gives, for example with truncate
    restore  makes a new file of a snapshot
    salvage  discards damaged records, so that the file can be opened
             again, if nothing else is damaged; copy the file before

The exit status is

    0    if all is well
    1    if a file is damaged or in use, or something fails
    2    for wrong usage or another file that cannot be used
    130  after an interrupt or a SIGTERM of snapshot, restore, shrink or
         salvage; snapshot and restore then leave no file, shrink leaves
         it as it was`
}

type storeCheckCommand struct {
	File string `arg:"" help:"The file."`
}

// checkReport is a [bolt.Report] as JSON.
type checkReport struct {
	File  string `json:"file"`
	OK    bool   `json:"ok"`
	Bytes int64  `json:"bytes"`
	// Store, Timeline, Branch, Format and Created are left out if damage hides them, and Branch also
	// if the file was not restored.
	Store    string                   `json:"store,omitempty"`
	Timeline uint64                   `json:"timeline,omitzero"`
	Branch   string                   `json:"branch,omitempty"`
	Format   uint64                   `json:"format,omitzero"`
	Created  time.Time                `json:"created,omitzero"`
	Records  int                      `json:"records"`
	Types    map[string]checkRevision `json:"types"`
	Warnings []string                 `json:"warnings,omitempty"`
	Problems []string                 `json:"problems,omitempty"`
	// Unlisted is how many problems there are besides these.
	Unlisted int `json:"unlisted,omitempty"`
}

type checkRevision struct {
	Revision  store.Revision `json:"revision"`
	Compacted store.Revision `json:"compacted"`
}

// Run prints the report, and fails if the file is damaged.
func (c *storeCheckCommand) Run(to *streams) error {
	r, err := bolt.Check(c.File)
	if err != nil {
		return objectfile.Usable(err)
	}
	report := checkReport{
		File: r.Path, OK: len(r.Problems) == 0, Bytes: r.Size, Store: r.StoreID, Timeline: r.Timeline, Branch: branchOf(r.Branch),
		Format: r.Format, Created: r.Created, Records: r.Records, Types: map[string]checkRevision{}, Warnings: r.Warnings, Unlisted: r.Unlisted,
	}
	for name, info := range r.Types {
		report.Types[name] = checkRevision(info)
	}
	for _, problem := range r.Problems {
		report.Problems = append(report.Problems, problem.Error())
	}
	out := json.NewEncoder(to.stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(report); err != nil {
		return err
	}
	return damaged(r)
}

// damaged returns an error that has been reported, if the file has problems.
func damaged(r *bolt.Report) error {
	if len(r.Problems) > 0 {
		return errFailed
	}
	return nil
}

type storeInfoCommand struct {
	File string `arg:"" help:"The file."`
}

// Run prints the description of the file.
func (c *storeInfoCommand) Run(to *streams) error {
	f, err := bolt.Open(c.File, bolt.Options{ReadOnly: true})
	if err != nil {
		return objectfile.Usable(err)
	}
	defer f.Close()
	info, err := f.Info()
	if err != nil {
		return err
	}
	return writeInfo(to.stdout, info)
}

// branchOf returns a branch as text, as it is in the names of storage; empty for none.
func branchOf(branch uint64) string {
	if branch == 0 {
		return ""
	}
	return strconv.FormatUint(branch, 16)
}

func writeInfo(w io.Writer, info bolt.Info) error {
	timeline := strconv.FormatUint(info.Timeline, 10)
	if branch := branchOf(info.Branch); branch != "" {
		timeline += ", branch " + branch
	}
	_, err := fmt.Fprintf(w, "file       %s, %d bytes, %d of them unused\nstore      %s, timeline %s, format %d\ncreated    %s\n",
		info.Path, info.Size, info.Free, info.StoreID, timeline, info.Format, info.Created.UTC().Format(time.RFC3339))
	for _, name := range slices.Sorted(maps.Keys(info.Types)) {
		history := "from the beginning"
		if oldest := info.Types[name].Compacted; oldest > 0 {
			history = fmt.Sprintf("from revision %d", oldest)
		}
		_, more := fmt.Fprintf(w, "type       %s, at revision %d, history %s\n", name, info.Types[name].Revision, history)
		err = cmp.Or(err, more)
	}
	for _, warning := range info.Warnings {
		_, more := fmt.Fprintf(w, "warning    %s\n", warning)
		err = cmp.Or(err, more)
	}
	return err
}

type storeSnapshotCommand struct {
	File     string `arg:"" help:"The file."`
	Snapshot string `arg:"" help:"The snapshot to write, which must not exist, or a pipe."`
}

// Run writes the snapshot, and prints its description if it is a file.
func (c *storeSnapshotCommand) Run(ctx context.Context, to *streams) error {
	// There is no limit of time: no program can write meanwhile, so a slow pipe keeps no space from being reused.
	const unlimited = math.MaxInt64
	f, err := bolt.Open(c.File, bolt.Options{ReadOnly: true, SnapshotTimeout: unlimited})
	if err != nil {
		return objectfile.Usable(err)
	}
	defer f.Close()
	out, err := c.create(ctx)
	if err != nil {
		return objectfile.Usable(err)
	}
	defer out.Discard()
	manifest, err := f.Snapshot(ctx, out)
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case err != nil:
		return err
	}
	if err := out.Publish(); err != nil {
		return fmt.Errorf("cannot write a snapshot of %s: %w", c.File, err)
	}
	if out.Direct() {
		return nil
	}
	return c.describe(to.stdout, manifest)
}

// create creates the draft of the snapshot, which only its owner may read, as a new file of
// objects. A pipe opens once a program reads it: until then the end of ctx ends the call.
func (c *storeSnapshotCommand) create(ctx context.Context) (*draft.Draft, error) {
	switch info, err := os.Stat(c.Snapshot); {
	case errors.Is(err, fs.ErrNotExist):
		return draft.NewFile(c.Snapshot, 0o600)
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w: move it away first", c.Snapshot, fs.ErrExist)
	}
	return interrupt.DoOrUndo(ctx, func() (*draft.Draft, error) { return draft.New(c.Snapshot) }, (*draft.Draft).Discard)
}

func (c *storeSnapshotCommand) describe(w io.Writer, m bolt.Manifest) error {
	_, err := fmt.Fprintf(w, "snapshot   %s, of %d bytes\nstore      %s, timeline %d, format %d\n", c.Snapshot, m.Bytes, m.ID, m.Timeline, m.Format)
	for _, name := range slices.Sorted(maps.Keys(m.Revisions)) {
		_, more := fmt.Fprintf(w, "type       %s, at revision %d\n", name, m.Revisions[name])
		err = cmp.Or(err, more)
	}
	return err
}

type storeRestoreCommand struct {
	Snapshot string `arg:"" help:"The snapshot, as watchmill store snapshot or File.Snapshot wrote it."`
	File     string `arg:"" help:"The file to make, which must not exist."`
	Floor    uint64 `placeholder:"REVISION" help:"A revision that all new ones must exceed, if more than 2^32 changes were written since the snapshot."`
}

// Run restores, and prints the description of the new file.
func (c *storeRestoreCommand) Run(ctx context.Context, to *streams) error {
	if _, err := os.Stat(c.Snapshot); err != nil {
		return objectfile.Usable(err)
	}
	snapshot := readUntil(ctx, c.Snapshot)
	defer snapshot.Close()
	_, err := bolt.Restore(ctx, snapshot, c.File, bolt.RestoreOptions{Floor: store.Revision(c.Floor)})
	if errors.Is(err, backend.ErrCorrupt) {
		err = fmt.Errorf("%s: %w", c.Snapshot, err) // which the error only calls the snapshot
	}
	var option *engine.ConfigError
	if errors.As(err, &option) && option.Field == "RestoreOptions.Floor" {
		return &engine.ConfigError{Field: "--floor", Problem: option.Problem} // nothing is wrong with the file
	}
	if err != nil {
		return objectfile.Usable(err)
	}
	return (&storeInfoCommand{File: c.File}).Run(to)
}

// readUntil reads a file until ctx is done. A pipe may have nothing to read for hours, or no
// writer, so another goroutine reads the file, and ends when that changes.
func readUntil(ctx context.Context, name string) *io.PipeReader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Canceled) })
	go func() {
		f, err := os.Open(name)
		if err == nil {
			_, err = io.Copy(w, f)
			err = errors.Join(err, f.Close())
		}
		w.CloseWithError(err)
	}()
	return r
}

type storeShrinkCommand struct {
	File string `arg:"" help:"The file."`
}

// Run shrinks the file, and prints its sizes before and after.
func (c *storeShrinkCommand) Run(ctx context.Context, to *streams) error {
	before, after, err := bolt.Shrink(ctx, c.File)
	if err != nil {
		return objectfile.Usable(err)
	}
	_, err = fmt.Fprintf(to.stdout, "%s had %d bytes and has %d\n", c.File, before, after)
	return err
}
