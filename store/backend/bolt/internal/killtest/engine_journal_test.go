package killtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/watchmill/watchmill/engine"
)

// entry is a line of a consumer's journal: one of its fields, or an event with the
// checkpoint that was saved with it.
type entry struct {
	Begin *beginning           `json:",omitempty"`
	Event *engine.Event[thing] `json:",omitempty"`
	Saved *engine.Checkpoint   `json:",omitempty"`
	// Expired: the watch has ended since the history does not reach back to it.
	Expired bool `json:",omitempty"`
}

// beginning is that of a watch: in which life, and from where. With State, it begins with
// the state, since From is too old, or nothing is saved.
type beginning struct {
	Life  int
	From  engine.Checkpoint
	State bool
}

// journal returns where a consumer's journal is.
func (c *consumer) journal(dir string) string { return filepath.Join(dir, c.name+".journal") }

// file returns where a consumer's checkpoint is, if it has a file of its own.
func (c *consumer) file(dir string) string { return filepath.Join(dir, c.name+".checkpoint") }

// write appends lines to the journal, all at once.
func (r *running) write(lines ...entry) error {
	var text bytes.Buffer
	encode := json.NewEncoder(&text)
	for _, line := range lines {
		if err := encode.Encode(line); err != nil {
			return err
		}
	}
	_, err := r.out.Write(text.Bytes())
	return err
}

// entries returns what a consumer's journal has. A last line without its end does not
// count.
func (c *consumer) entries(dir string) ([]entry, error) {
	text, err := os.ReadFile(c.journal(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []entry
	decode := json.NewDecoder(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	for decode.More() {
		var one entry
		if err := decode.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// checkpoint returns what a consumer has saved, the zero value if nothing.
func (c *consumer) checkpoint(dir string) (saved engine.Checkpoint, err error) {
	if c.saves == savesInFile {
		text, err := os.ReadFile(c.file(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return saved, err
		}
		return engine.ParseCheckpoint(string(text))
	}
	entries, err := c.entries(dir)
	for _, one := range entries {
		if one.Saved != nil {
			saved = *one.Saved
		}
	}
	return saved, err
}

// shorten replaces a consumer's journal, which was judged, by what it has saved.
func (c *consumer) shorten(dir string) error {
	saved, err := c.checkpoint(dir)
	if err != nil {
		return err
	}
	var text []byte
	if c.saves > savesInFile && saved != (engine.Checkpoint{}) {
		if text, err = json.Marshal(entry{Saved: &saved}); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	return replaceFile(c.journal(dir), text)
}

// replaceFile replaces a file, as far as a process that is killed is concerned.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
