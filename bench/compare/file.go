package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Begin and End are the lines between which [Report.WriteInto] puts the table.
const (
	Begin = "<!-- bench: begin -->"
	End   = "<!-- bench: end -->"
)

// ErrNoMarks: an existing file lacks the lines Begin and End.
var ErrNoMarks = errors.New("file exists and has no lines " + Begin + " and " + End + " to put the table between")

// WriteInto writes the Markdown into the file at path: between the lines Begin
// and End, or into a new file. It does not change a file without these lines.
func (r *Report) WriteInto(path string) error {
	var b strings.Builder
	if err := r.WriteMarkdown(&b); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(path, []byte(Begin+"\n"+b.String()+End+"\n"), 0o644)
	}
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), Begin+"\n")
	_, after, ended := strings.Cut(rest, End)
	if !found || !ended {
		return fmt.Errorf("%s: %w", path, ErrNoMarks)
	}
	return os.WriteFile(path, []byte(before+Begin+"\n"+b.String()+End+after), 0o644)
}
