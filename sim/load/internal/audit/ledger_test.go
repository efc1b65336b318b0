package audit_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/load/internal/audit"
	"github.com/watchmill/watchmill/store"
)

// Writers note in the order in which their calls return. Whoever still measures
// asks for the newest while others put that in order: the race detector watches.
func TestTheNewestCanBeAskedForWhileAllIsPutInOrder(t *testing.T) {
	var l audit.Ledger
	for rev := store.Revision(1000); rev > 0; rev-- {
		l.Note(audit.Entry{Revision: rev, Key: "a"})
	}
	asked, enough := make(chan struct{}), make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		newest, _ := l.Newest()
		close(asked)
		for ; newest.Revision > 0; newest, _ = l.Newest() {
			select {
			case <-enough:
				return
			default:
			}
		}
	})
	<-asked
	require.Equal(t, store.Revision(1000), l.NewestByKey()["a"].Revision)
	close(enough)
	asking.Wait()
}
