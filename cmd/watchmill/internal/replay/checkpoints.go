package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/internal/directory"
	"github.com/watchmill/watchmill/sim/load"
)

// checkpointsFormat is the format that a file of checkpoints names.
const checkpointsFormat = "watchmill replay checkpoints 1"

// The maximum size of the parts of a file of checkpoints, in bytes: the settings without the
// selector, and the position of one watcher.
const (
	maxSettingsBytes = 16 << 10
	maxPositionBytes = 2 << 10
)

// checkpoints is the file in which a replay saves its position. Every save replaces the
// whole file at once, so that a crash leaves either the old or the new content.
type checkpoints struct {
	path string
	settings
}

// settings are the options on which the result of a replay depends, besides the trace.
type settings struct {
	Watchers  int    `json:"watchers"`
	Via       string `json:"via"`
	Select    string `json:"select"`
	Policy    string `json:"policy"`
	Slow      int    `json:"slow"`
	Reconnect int    `json:"reconnect"`
	Seed      uint64 `json:"seed"`
}

func (o *Options) settings() settings {
	return settings{o.Watchers, o.Via.String(), o.Select, o.Policy.String(), o.Slow, o.Reconnect, o.Seed}
}

// envelope is the content of the file. Sum is the CRC-32C of Body, in hexadecimal, and shows
// damage.
type envelope struct {
	Format string          `json:"format"`
	Sum    string          `json:"sum"`
	Body   json.RawMessage `json:"body"`
}

type body struct {
	Settings settings    `json:"settings"`
	Saved    *load.Saved `json:"saved"`
}

// encode returns the content of a file with the given body.
func encode(body []byte) ([]byte, error) {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	data, err := json.Marshal(envelope{checkpointsFormat, fmt.Sprintf("%08x", sum), body})
	return append(data, '\n'), err
}

// invalid returns an error about the file.
func (c *checkpoints) invalid(format string, args ...any) error {
	return &OptionError{Option: "--checkpoints", Problem: c.path + " " + fmt.Sprintf(format, args...)}
}

// read returns the saved position, which must have been saved with the same options. The
// error is [fs.ErrNotExist] if there is no file.
func (c *checkpoints) read() (*load.Saved, error) {
	f, err := c.open(c.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const escaped = 6 // bytes for one in JSON, at most
	most := int64(maxSettingsBytes + escaped*len(c.Select) + c.Watchers*maxPositionBytes)
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, c.invalid("has more bytes than the checkpoints of %d watchers: it is of another replay, or something else", c.Watchers)
	}
	return c.decode(data)
}

// open opens a file of checkpoints. It refuses a pipe, which would wait for a program that writes to
// it.
func (c *checkpoints) open(path string) (*os.File, error) {
	if draft.Special(path) {
		return nil, &OptionError{Option: "--checkpoints", Problem: path + " is not a regular file; give another name"}
	}
	return os.Open(path)
}

func (c *checkpoints) decode(data []byte) (*load.Saved, error) {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, c.invalid("is torn, or not a file of checkpoints: %v", err)
	}
	if e.Format != checkpointsFormat {
		return nil, c.invalid("is not a file of checkpoints that this program can read: its format is %.60q and not %q", e.Format, checkpointsFormat)
	}
	if whole, err := encode(e.Body); err != nil || !bytes.Equal(whole, data) {
		return nil, c.invalid("is damaged: its checksum is not that of its content")
	}
	var b body
	if err := json.Unmarshal(e.Body, &b); err != nil || b.Saved == nil {
		return nil, c.invalid("is damaged: %v", errors.Join(err, errors.New("it has no saved position")))
	}
	return b.Saved, c.compare(b.Settings)
}

// compare refuses checkpoints that were saved with other options, and names the first that
// differs.
func (c *checkpoints) compare(was settings) error {
	for _, s := range []struct {
		flag     string
		was, now any
	}{
		{"--watchers", was.Watchers, c.Watchers},
		{"--via", was.Via, c.Via},
		{"--select", was.Select, c.Select},
		{"--policy", was.Policy, c.Policy},
		{"--slow", was.Slow, c.Slow},
		{"--reconnect", was.Reconnect, c.Reconnect},
		{"--seed", was.Seed, c.Seed},
	} {
		if s.was != s.now {
			return &OptionError{Option: s.flag, Problem: fmt.Sprintf("is %v, but the replay that saved %s was begun with %v; give the same", quoted(s.now), c.path, quoted(s.was))}
		}
	}
	return nil
}

// quoted returns a value as an error shows it.
func quoted(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", text)
	}
	return fmt.Sprint(v)
}

// write replaces the file by one with the position s.
func (c *checkpoints) write(s *load.Saved) error {
	inner, err := json.Marshal(body{c.settings, s})
	if err != nil {
		return err
	}
	data, err := encode(inner)
	if err != nil {
		return err
	}
	path := directory.Followed(c.path) // of a link the target is replaced, not the link
	next := path + ".new"
	if err := c.replaceable(next); err != nil {
		return err
	}
	if err := writeSynced(next, data); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	_ = directory.Sync(filepath.Dir(path)) // without it a crash may restore the previous file, which is valid, too
	return nil
}

// replaceable refuses a file at the path of the next checkpoints, unless a replay that
// was killed while writing it has left it there.
func (c *checkpoints) replaceable(next string) error {
	f, err := c.open(next)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	begin := []byte(`{"format":"` + checkpointsFormat + `"`)
	found, err := io.ReadAll(io.LimitReader(f, int64(len(begin))))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(begin, found) {
		return c.invalid("is replaced through %s, which exists and is not a file of checkpoints; move that away, or give another name", next)
	}
	return nil
}

// writeSynced writes a file and waits until it is on disk. After an error there is no file.
func writeSynced(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path) // what is wrong with it is reported
	}
	return err
}

// begin refuses a file that exists, since another replay may need it.
func (c *checkpoints) begin() error {
	switch _, err := os.Stat(c.path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return c.invalid("exists already; go on from it with --continue, or give another name")
}
