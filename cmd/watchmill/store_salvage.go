package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
)

type storeSalvageCommand struct {
	File string `arg:"" help:"The file. Make a copy of it first."`
}

// Help returns the text that --help adds.
func (*storeSalvageCommand) Help() string {
	return `With the damaged records it discards the history up to the last of them: clients with older revisions list again. An object whose newest record is damaged has lost its value, and is deleted. Each record and object is printed.

If anything but records is damaged, the file is left as it is. Restore a snapshot then.

After an interrupt or a SIGTERM objects without a value may be left. Another salvage deletes them.`
}

// Run discards what is damaged, and prints what that was. Output that cannot be written is an
// error once all is done.
func (c *storeSalvageCommand) Run(ctx context.Context, to *streams) (err error) {
	out := bufio.NewWriter(to.stdout)
	defer func() { err = errors.Join(err, out.Flush()) }()
	repairs, err := c.discard()
	if err != nil {
		return objectfile.Usable(err)
	}
	for _, repair := range repairs {
		fmt.Fprintln(out, "discarded ", repair)
	}
	lost, err := c.lost()
	if err != nil {
		return objectfile.Usable(err)
	}
	if len(repairs)+len(lost) == 0 {
		fmt.Fprintln(out, "nothing is damaged")
		return nil
	}
	return c.remove(ctx, lost, out)
}

// discard discards the damaged records, and says which.
func (c *storeSalvageCommand) discard() ([]string, error) {
	if _, err := os.Stat(c.File); err != nil {
		return nil, err // Open would make the file
	}
	f, err := bolt.Open(c.File, bolt.Options{Salvage: true})
	if err != nil {
		return nil, err
	}
	info, err := f.Info()
	return info.Repairs, errors.Join(err, f.Close())
}

// lost returns the objects whose values are lost, by type and key.
func (c *storeSalvageCommand) lost() (map[string]map[string]store.Revision, error) {
	all := map[string]map[string]store.Revision{}
	_, err := bolt.Dump(c.File, func(r bolt.Record) error {
		switch {
		case r.Lost && all[r.Type] == nil:
			all[r.Type] = map[string]store.Revision{r.Key: r.Revision}
		case r.Lost:
			all[r.Type][r.Key] = r.Revision
		case r.Event != store.Emitted:
			delete(all[r.Type], r.Key) // it was written or deleted later
		}
		return nil
	})
	maps.DeleteFunc(all, func(_ string, keys map[string]store.Revision) bool { return len(keys) == 0 })
	return all, err
}

// remove deletes objects, and prints them.
func (c *storeSalvageCommand) remove(ctx context.Context, lost map[string]map[string]store.Revision, out io.Writer) error {
	f, err := bolt.Open(c.File, bolt.Options{})
	if err != nil {
		return objectfile.Usable(err)
	}
	defer f.Close()
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		b, err := bolt.New(f, name, rawConfig())
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(lost[name])) {
			if _, err := b.Remove(ctx, &store.Object{Key: key, Revision: lost[name][key]}); err != nil {
				return err
			}
			fmt.Fprintf(out, "deleted    %s %s, whose value is lost\n", name, key)
		}
	}
	return nil
}

// rawConfig describes an unknown type. Its history stays, since it is not known either how much of it the
// program keeps.
func rawConfig() bolt.Config {
	return bolt.Config{
		Schema: rawSchema(), Codec: rawCodec{}, OnUndecodable: bolt.Keep,
		Retain: window.Limits{MinEvents: math.MaxInt, MaxEvents: math.MaxInt},
	}
}

// raw is an object of any type, with its value as it is in the file.
type raw struct {
	store.Object
	value []byte
}

// rawSchema describes raws. None is written.
func rawSchema() store.Schema {
	return store.Schema{
		New:      func() *store.Object { return &new(raw).Object },
		Clone:    func(o *store.Object) *store.Object { c := *store.As[raw](o); return &c.Object },
		Pointer:  func(o *store.Object) any { return &store.As[raw](o).value },
		Key:      func(o *store.Object) string { return o.Key },
		Describe: func(*store.Object) {},
		Size:     func(o *store.Object) int { return len(store.As[raw](o).value) },
		Equal:    func(a, b *store.Object) bool { return false },
	}
}

// rawCodec reads the bytes of any value.
type rawCodec struct{}

var errNotWritten = errors.New("objects whose type is not known are not written")

func (rawCodec) Encode(any) (tag uint8, data []byte, err error) { return 0, nil, errNotWritten }

func (rawCodec) Decode(_ uint8, data []byte, into any) error {
	value, ok := into.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot read into a %T", into)
	}
	*value = slices.Clone(data)
	return nil
}
