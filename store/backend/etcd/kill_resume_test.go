package etcd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/etcd"
)

// resumeVariable tells a process to resume from a checkpoint.
const resumeVariable = "WATCHMILL_ETCD_RESUME"

// resumption is what that process is to do.
type resumption struct {
	Endpoints []string
	Prefix    string
	From      engine.Checkpoint
	Through   engine.Revision
}

// resumeElsewhere returns the events from a checkpoint through a revision, as an engine
// in another process has them.
func resumeElsewhere(t testing.TB, endpoints []string, prefix string, from engine.Checkpoint, through engine.Revision) []string {
	t.Helper()
	job, err := json.Marshal(resumption{endpoints, prefix, from, through})
	require.NoError(t, err)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), resumeVariable+"="+string(job))
	process.Stderr = os.Stderr
	out, err := process.Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// resumeMain prints what resumeElsewhere returns if the process is its, and ends it.
func resumeMain() {
	job := os.Getenv(resumeVariable)
	if job == "" {
		return
	}
	if err := printResumed(context.Background(), job); err != nil {
		fmt.Fprintln(os.Stderr, "resuming:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func printResumed(ctx context.Context, job string) error {
	var r resumption
	if err := json.Unmarshal([]byte(job), &r); err != nil {
		return err
	}
	cfg := things()
	starting, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	b, err := open(starting, etcd.Config{Prefix: r.Prefix, Endpoints: r.Endpoints, Schema: cfg.Schema()})
	if err != nil {
		return err
	}
	cfg.Backend = b
	e, err := engine.New(cfg)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	lines, err := resumed(ctx, e, r.From, r.Through)
	for _, line := range lines {
		fmt.Println(line)
	}
	return errors.Join(err, e.Close(), b.Close())
}
