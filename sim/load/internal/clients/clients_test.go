package clients

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// begun is a history at its beginning, of which everything is selected.
type begun struct{ History }

func (begun) Selects(*store.Object) bool             { return true }
func (begun) ProgressAt(rev engine.Revision) float64 { return 0 }

func file(key, version string, rev engine.Revision) states.Item {
	return &engine.Object[content.Item]{Key: key, Value: content.Item{Key: key, Version: version, IsFile: true}, Revision: rev}
}

func TestHandlerClient_ANotificationThatDoesNotFitIsAMisfit(t *testing.T) {
	for name, c := range map[string]struct {
		kind    engine.EventType
		key     string
		rev     engine.Revision
		misfits int
	}{
		"the next":            {engine.Modified, "a", 4, 0},
		"the end":             {engine.Deleted, "a", 4, 0},
		"another object":      {engine.Added, "b", 4, 0},
		"added twice":         {engine.Added, "a", 4, 1},
		"the same again":      {engine.Modified, "a", 3, 1},
		"one of before":       {engine.Modified, "a", 2, 1},
		"the end of nothing":  {engine.Deleted, "b", 4, 1},
		"a change of nothing": {engine.Modified, "b", 4, 1},
	} {
		l := &handlerClient{Outcome: Outcome{State: states.Objects{}}, history: begun{}}
		l.receive(informer.Notification[content.Item]{Type: engine.Added, Object: file("a", "1", 3)})
		require.Zero(t, l.Misfits)
		l.receive(informer.Notification[content.Item]{Type: c.kind, Object: file(c.key, "2", c.rev)})
		require.Equal(t, c.misfits, l.Misfits, name)
	}
}

func TestReferenceReader_AnOlderStateIsAMisfit(t *testing.T) {
	h := &referenceReader{Outcome: Outcome{State: states.Objects{}}}
	two, three := file("a", "1", 2), file("a", "2", 3)
	for _, o := range []states.Item{nil, two, two, three, nil, nil, three} {
		h.applyRead("a", o)
	}
	require.Zero(t, h.Misfits)
	require.EqualValues(t, 4, h.Delivered.Load())
	h.applyRead("a", two)
	require.Equal(t, 1, h.Misfits)
}
