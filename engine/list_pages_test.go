package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// Pages of the backend after the first are asked for by their token alone, which
// holds the revision.
func TestList_ExactOnesReadTheBackendPageByPage(t *testing.T) {
	c := cfg()
	c.NoCache = true
	e, err := engine.New(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	var last engine.Revision
	for i := range 2100 {
		app := "web"
		if i > 2000 {
			app = "rare"
		}
		o, err := e.Put(t.Context(), pod{Name: fmt.Sprintf("p%04d", i), App: app})
		require.NoError(t, err)
		last = o.Revision
	}
	l, err := e.List(t.Context(), engine.ListOptions{Labels: "app=rare", Limit: 5, Read: engine.Exactly(last)})
	require.NoError(t, err)
	require.Len(t, l.Items, 5)
	require.Equal(t, "p2001", l.Items[0].Key)
}

// A selector may match few objects, so the backend is asked for more than the page has.
func TestList_OfFewMatchesAsksTheBackendOnce(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = true })
	for i := range 100 {
		f.put(fmt.Sprintf("p%02d", i), "web", i)
	}
	f.put("q", "rare", 1)
	f.lists(engine.ListOptions{Labels: "app=rare", Limit: 1}, "@102: q=1@102", "list")
}

func TestVerify_ComparesMoreThanAPage(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	var last engine.Revision
	for i := range 10_001 { // one more than the backend is asked for at once
		o, err := e.Put(t.Context(), pod{Name: fmt.Sprintf("p%05d", i)})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, e.WaitFor(t.Context(), last))
	require.NoError(t, e.Verify(t.Context()))
}
