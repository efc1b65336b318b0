package bolt_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// The records of a group are in memory that the next group uses again, unless they are
// large: all of them are in the file as they were written.
func TestWrite_GroupsOfAnySizeAreWrittenWhole(t *testing.T) {
	f, disk := newFaulty(t)
	const writers, rounds = 20, 4
	var all sync.WaitGroup
	for round := range rounds {
		entered, wait := make(chan struct{}), make(chan struct{})
		disk.Add(journaltest.Fault{Entered: entered, Wait: wait})
		all.Go(func() { f.tryPut("first", fmt.Sprint(round)) })
		<-entered
		for w := range writers {
			all.Go(func() {
				size := 1 << ((w + 5*round) % writers) // up to 512 KiB, in another order each round
				f.tryPut(fmt.Sprint("item-", w), fmt.Sprintf("%d/%d %s", w, round, strings.Repeat("x", size)))
			})
		}
		require.Eventually(t, func() bool { return f.file.Queued() == writers }, time.Minute, time.Millisecond)
		close(wait)
		all.Wait()
	}
	written, last := f.list(backend.ListOptions{}), f.revision()
	require.Len(t, written, writers+1)
	before := f.watch(1, "")
	told := before.read(last, 100)
	before.Close()
	f.reopen(0)
	require.Equal(t, written, f.list(backend.ListOptions{}))
	after := f.watch(1, "")
	defer after.Close()
	require.Equal(t, told, after.read(last, 100))
}
