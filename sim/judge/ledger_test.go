package judge_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// Writers note their writes in the order in which their calls return, while readers call
// Newest. The race detector checks that.
func TestLedger_NewestIsReadWhileEntriesAreSorted(t *testing.T) {
	var l judge.Ledger
	for rev := store.Revision(1000); rev > 0; rev-- {
		l.Note(judge.Entry{Revision: rev, Key: "a"})
	}
	reading, done := make(chan struct{}), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		newest, _ := l.Newest()
		close(reading)
		for ; newest.Revision > 0; newest, _ = l.Newest() {
			select {
			case <-done:
				return
			default:
			}
		}
	})
	<-reading
	require.Equal(t, store.Revision(1000), l.NewestByKey()["a"].Revision)
	close(done)
	reader.Wait()
}
