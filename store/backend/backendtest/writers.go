package backendtest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// writers are goroutines that write, each its own keys.
type writers struct {
	total int // writes in all
	group sync.WaitGroup
	mu    sync.Mutex
	wrote []store.Revision
	err   error
}

// write starts n writers that create each objects under prefix.
func (r *rig) write(n, each int, prefix string) *writers {
	ws := &writers{total: n * each}
	for w := range n {
		ws.group.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%s/%d/%d", prefix, w, i)
				ws.record(r.tryPut(draft(key, ""), nil, backend.PutOptions{}))
			}
		})
	}
	return ws
}

func (ws *writers) record(o *object, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if err != nil {
		ws.err = err
		return
	}
	ws.wrote = append(ws.wrote, o.Revision)
}

// wait returns the revisions of all the writes, in order.
func (ws *writers) wait(r *rig) []store.Revision {
	r.Helper()
	ws.group.Wait()
	require.NoError(r, ws.err)
	slices.Sort(ws.wrote)
	return ws.wrote
}
