package bolt_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
)

// instruction is one step of a script. Its numbers choose among what there is when it is played, so
// that each step can follow any other.
type instruction struct {
	Verb    string
	A, B, C int
}

// verbs are what a step can do. Those that come often are there more than once.
var verbs = []string{
	"put", "put", "put", "put", "remove", "emit", "stale", "compact", "pass", "rewrite",
	"get", "list", "list", "page", "watch", "watch", "read", "read", "read",
	"full", "fail", "cut", "reopen", "reopen", "restore",
}

var scripts = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) instruction {
	number := rapid.IntRange(0, 1<<10)
	return instruction{rapid.SampledFrom(verbs).Draw(t, "verb"), number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c")}
}), 30, 80)

// A backend shows what the model does, whatever is written, compacted, listed in pages and
// watched from old revisions, over restarts, full and failing disks, power cuts, and restored
// snapshots.
func TestBackend_AgreesWithAModel(t *testing.T) {
	defer smallWindows()()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) { play(t, dir, scripts.Draw(t, "script"), sabotage{}) })
}

// smallWindows makes short scripts reach what is in the file alone, and how that is read in
// several runs.
func smallWindows() (restore func()) {
	hot := bolt.SetHotLimits(window.Limits{MaxEvents: 8, ChunkSize: 2})
	cold := bolt.SetColdRun(4)
	return func() {
		hot()
		cold()
	}
}

// play plays a script on a new file, in a directory of its own under dir.
func play(t judge, dir string, script []instruction, broken sabotage) {
	t.Helper()
	p := newPlay(t, dir, broken)
	defer p.abandon()
	for _, s := range script {
		p.perform(s)
		p.requireNewest()
	}
	p.audit()
}

// judge is told that a script has failed.
type judge interface {
	require.TestingT
	Helper()
}

// verdict is a judge that remembers what it is told.
type verdict struct{ failure string }

func (v *verdict) Helper()                           {}
func (v *verdict) Errorf(format string, args ...any) { v.failure += fmt.Sprintf(format, args...) }
func (v *verdict) FailNow()                          { runtime.Goexit() }

// failureOf plays a script and returns what is wrong, "" if nothing is.
func failureOf(dir string, script []instruction, broken sabotage) string {
	v := &verdict{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if reason := recover(); reason != nil {
				v.Errorf("panic: %v\n%s", reason, debug.Stack())
			}
		}()
		play(v, dir, script, broken)
	}()
	<-done
	return v.failure
}

// The scripts are worth nothing if they find no defect.
func TestBackend_ScriptsFindEachSabotage(t *testing.T) {
	defer smallWindows()()
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			for seed := range 300 {
				if failure := failureOf(dir, scripts.Example(seed), s); failure != "" {
					t.Logf("found by script %d: %.600s", seed, failure)
					return
				}
			}
			require.Fail(t, "it was not found")
		})
	}
}
