package killtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/killtest"
)

// The last write, of a key that every consumer watches.
const lastKey, lastText = "shared/0", "last"

// lifetime is the longest time that a process writes before it is killed.
const lifetime = 200 * time.Millisecond

// kill runs a life of the process, which is killed within a time, or kills itself if that
// is zero.
func (a *audit) kill(life int, within time.Duration, random *rand.Rand, f fault) error {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%v", engineVariable, a.dir, life, f))
	return killtest.Kill(child, within, random, a.take)
}

// finish is the last life, in this process: every consumer reads everything.
func (a *audit) finish(t *testing.T, life int) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e, stop, err := openEngine(a.dir)
	require.NoError(t, err)
	var reading sync.WaitGroup
	for _, c := range consumers() {
		c.few = 0
		r, err := c.run(a.dir, life, e, fault{})
		require.NoError(t, err)
		reading.Go(func() {
			if err := r.consume(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	last := thing{Name: lastKey, Text: lastText, Color: "red", Size: "big"}
	a.tried[write{last.Name, last.String()}]++
	_, err = e.Put(ctx, last)
	require.NoError(t, err)
	reading.Wait()
	require.NoError(t, stop())
	require.False(t, t.Failed())
	require.NoError(t, a.life(life, true))
}

// Processes are killed while engines write, and consumers of several watches save what
// they have come to. In the next process they go on from there: each is given everything
// that was acknowledged, in order, and handles it exactly once if it saves with each event
// that it has handled it, otherwise at least once.
func TestKill_ConsumersResumeInTheNextProcess(t *testing.T) {
	n := rounds(t, 8)
	a, random := newAudit(t.TempDir()), rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	life := 0
	for ; life < n || a.acknowledged == 0; life++ {
		require.NoError(t, a.kill(life, lifetime, random, fault{}), "life %d", life)
		require.NoError(t, a.life(life, false), "life %d", life)
		if (life+1)%100 == 0 {
			t.Logf("%d lives: %v", life+1, a.tally)
		}
	}
	a.finish(t, life)
	for _, c := range consumers() {
		if c.saves != savesNothing {
			require.Equal(t, engine.Revision(a.history.Newest()), a.saved[c.name].Revision, c.name)
		}
	}
	t.Logf("%d lives: %v", life, a.tally)
}
