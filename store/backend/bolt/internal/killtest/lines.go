package killtest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/watchmill/watchmill/store"
)

// Line is what a child says about a key at a revision. Only the text may have spaces.
type Line struct {
	What, Key string
	Revision  store.Revision
	Text      string
}

// Lines are a child's output. Each is written at once: a buffer would lose lines when the
// process is killed.
type Lines struct {
	mu  sync.Mutex
	out io.Writer
}

// NewLines returns lines that are written to out.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Tell writes a line, which is outside the process when Tell returns.
func (l *Lines) Tell(line Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.out, "%s %s %d %s\n", line.What, line.Key, line.Revision, line.Text)
	return err
}

// ReadLines calls each with the lines of a child until one fails or the output ends. A
// last line without its end does not count. Any other output is the child's failure.
func ReadLines(out io.Reader, each func(Line) error) error {
	r := bufio.NewReader(out)
	for {
		text, err := r.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, ok := parse(strings.TrimSuffix(text, "\n"))
		if !ok {
			return fmt.Errorf("the child failed: %s", strings.TrimSuffix(text, "\n"))
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

func parse(text string) (Line, bool) {
	words := strings.SplitN(text, " ", 4)
	if len(words) != 4 {
		return Line{}, false
	}
	rev, err := strconv.ParseUint(words[2], 10, 64)
	return Line{words[0], words[1], store.Revision(rev), words[3]}, err == nil
}
