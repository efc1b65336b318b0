package killtest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
)

// Options configures [Run].
type Options struct {
	// Rounds is how many children are killed.
	Rounds int
	// Writers is how many goroutines write in each.
	Writers int
	// Dir is where the file is.
	Dir string
	// Command starts a child: this program, so that it calls [ChildMain].
	Command func() *exec.Cmd
	// Report, if not nil, is called after each round with the counts so far.
	Report func(round int, j *Judge)
}

// childEnv is the variable that makes a process a child, with its arguments.
const childEnv = "WATCHMILL_KILLTEST_CHILD"

// ChildMain runs [Child] if this process is a child; otherwise it returns.
func ChildMain() {
	words := strings.Split(os.Getenv(childEnv), "|")
	if len(words) != 4 {
		return
	}
	writers, _ := strconv.Atoi(words[1])
	from, _ := strconv.ParseUint(words[2], 10, 64)
	seed, _ := strconv.ParseUint(words[3], 10, 64)
	err := Child(words[0], writers, store.Revision(from), seed, os.Stdout)
	fmt.Println("failed:", err)
	os.Exit(1)
}

// Run kills children after random times and checks the file that each has left. It
// returns the judge with the counts.
func Run(opts Options) (*Judge, error) {
	path := filepath.Join(opts.Dir, "state.db")
	j := NewJudge(path)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for round := range opts.Rounds {
		if err := kill(opts, j, path, uint64(round), random); err != nil {
			return j, fmt.Errorf("round %d: %w", round, err)
		}
		if err := j.Round(); err != nil {
			return j, fmt.Errorf("round %d: %w", round, err)
		}
		if opts.Report != nil {
			opts.Report(round, j)
		}
	}
	return j, nil
}

// firstRead is a reader that calls begun with the first data.
type firstRead struct {
	io.Reader
	begun func()
}

func (r *firstRead) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.begun()
	}
	return n, err
}

// kill kills a child that writes to the file at path.
func kill(opts Options, j *Judge, path string, seed uint64, random *rand.Rand) error {
	child := opts.Command()
	child.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{
		path, strconv.Itoa(opts.Writers), strconv.FormatUint(uint64(j.Seen), 10), strconv.FormatUint(seed, 10),
	}, "|"))
	return Kill(child, 120*time.Millisecond, random, j.Take)
}

// Kill starts a child, hands its output to take, and kills it at a random time, within the
// given one, after its first output, which a busy machine may delay; in a quarter of the
// calls after its start, so that its beginning is interrupted, too. A child with no such
// time ends by itself. Kill returns take's error, with what the child complained of.
func Kill(child *exec.Cmd, within time.Duration, random *rand.Rand, take func(io.Reader) error) error {
	var stderr bytes.Buffer
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	arm := func() {}
	if within > 0 {
		after := time.Duration(random.Int64N(int64(within)))
		arm = sync.OnceFunc(func() { time.AfterFunc(after, func() { _ = child.Process.Kill() }) })
		if random.IntN(4) == 0 {
			arm()
		}
	}
	err = take(&firstRead{out, arm})
	if err != nil {
		_ = child.Process.Kill()
	}
	_ = child.Wait()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return nil
}
