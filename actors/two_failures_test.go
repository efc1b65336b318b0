package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

// lives is an actor that has two children in each of its lives. In the first one it fails when
// one of them has ended.
type lives struct {
	journal
	failures
	made     int
	ref      *actors.Ref[do]
	children []*actors.Ref[do]
}

func (l *lives) spawn(ctx *actors.Context) {
	l.ref = actors.Spawn(ctx, "actor", func() actors.Behavior[do] {
		l.made++
		return &probe{
			journal: &l.journal, name: fmt.Sprint("life", l.made), fail: map[string]bool{"lost a child": l.made == 1},
			hooks: map[string]func(*actors.Context){"started": func(ctx *actors.Context) {
				for range 2 {
					l.children = append(l.children, spawnProbe(ctx, &probe{journal: new(journal), name: "child"}, actors.Options{}))
				}
			}},
		}
	}, actors.Options{})
}

// failTwice runs an actor both of whose children end, with messages for it, under a parent that
// decides so.
func failTwice(t *testing.T, seed uint64, d actors.Directive) *lives {
	l, seeded := new(lives), actors.NewSeeded(seed)
	sys := newSystem(t, actors.SystemConfig{Executor: seeded, OnFailure: l.failures.add})
	parent := spawnProbe(sys, &probe{journal: &l.journal, name: "parent", directive: d}, actors.Options{})
	parent.Tell(run("spawn", l.spawn))
	seeded.Run()
	for _, child := range l.children {
		child.Stop()
	}
	for i := range 3 {
		seeded.RunN(int(seed % 3))
		l.ref.Tell(say(fmt.Sprint(i)))
	}
	seeded.Run()
	return l
}

// An actor may fail again before its parent has decided. One restart is enough, and the new
// behavior has no message before it is started, nor the old one any more.
func TestTwoFailures_RestartOnce(t *testing.T) {
	for seed := range uint64(100) {
		l := failTwice(t, seed, actors.Restart)
		require.Equal(t, 2, l.made, "seed %d", seed)
		old, renewed, _ := strings.Cut(l.journal.take(), "life1 restarting")
		require.NotContains(t, renewed, "life1 got", "seed %d", seed)
		require.NotContains(t, renewed, "life2 restarting", "seed %d", seed)
		require.Equal(t, 3, strings.Count(old+renewed, "got ")-strings.Count(old, "got spawn"), "seed %d", seed)
		const failure = "parent/actor: in lost a child: Restart"
		require.Equal(t, failure+"; "+failure, l.failures.take(), "seed %d", seed)
	}
}

// If the actor is resumed, its parent decides about each.
func TestTwoFailures_ResumeAfterBothAreDecided(t *testing.T) {
	for seed := range uint64(100) {
		l := failTwice(t, seed, actors.Resume)
		require.Equal(t, 1, l.made, "seed %d", seed)
		events := l.journal.take()
		require.Equal(t, 2, strings.Count(events, "parent asked about"), "seed %d", seed)
		require.Regexp(t, "life1 got 0; .*life1 got 1; .*life1 got 2", events+"; ", "seed %d", seed)
		const failure = "parent/actor: in lost a child: Resume"
		require.Equal(t, failure+"; "+failure, l.failures.take(), "seed %d", seed)
	}
}

// If it is stopped, the other failure is reported.
func TestTwoFailures_StopAndReportBoth(t *testing.T) {
	for seed := range uint64(100) {
		l := failTwice(t, seed, actors.Stop)
		require.Equal(t, 1, l.made, "seed %d", seed)
		require.False(t, l.ref.Alive(), "seed %d", seed)
		const failure = "parent/actor: in lost a child: Stop"
		require.Equal(t, failure+"; "+failure, l.failures.take(), "seed %d", seed)
	}
}
