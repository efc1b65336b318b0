package engine_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// server has labels, but no map of them.
type server struct {
	Name, Region, Tier string
	N                  int
}

func serverConfig() engine.Config[server] {
	return engine.Config[server]{
		Key: func(s server) string { return s.Name },
		LabelValues: engine.LabelValues[server]{
			"tier":   func(s server) string { return s.Tier },
			"region": func(s server) string { return s.Region },
		},
		IndexLabels:      []string{"tier"},
		FirstRevision:    1,
		FreshnessTimeout: patience,
	}
}

func newServers(t require.TestingT, cfg engine.Config[server]) *engine.Engine[server] {
	e, err := engine.New(cfg)
	require.NoError(t, err)
	return e
}

func TestLabelValues_AreLabelsWhereTheyAreNotEmpty(t *testing.T) {
	e := newServers(t, serverConfig())
	defer func() { require.NoError(t, e.Close()) }()
	for _, test := range []struct {
		put  server
		want labels.Set
	}{
		{server{Name: "a", Region: "eu", Tier: "web"}, labels.Set{"region": "eu", "tier": "web"}},
		{server{Name: "a", Region: "eu"}, labels.Set{"region": "eu"}},
		{server{Name: "a", Tier: "web"}, labels.Set{"tier": "web"}},
		{server{Name: "a"}, nil},
		{server{Name: "a", Region: "us", Tier: "db"}, labels.Set{"region": "us", "tier": "db"}},
	} {
		o, err := e.Put(t.Context(), test.put)
		require.NoError(t, err)
		require.Equal(t, test.want, o.Labels.Set(), "%+v", test.put)
	}
}

func TestLabelValues_AreSharedByUpdatesThatChangeNone(t *testing.T) {
	e := newServers(t, serverConfig())
	defer func() { require.NoError(t, e.Close()) }()
	put := func(s server) *engine.Object[server] {
		o, err := e.Put(t.Context(), s)
		require.NoError(t, err)
		return o
	}
	first := put(server{Name: "a", Region: "eu", Tier: "web"})
	same := put(server{Name: "a", Region: "eu", Tier: "web", N: 1})
	require.True(t, store.SharesAttributes(store.Header(first), store.Header(same)))
	put(server{Name: "a", Region: "us", Tier: "web", N: 1})
	require.Equal(t, labels.Set{"region": "eu", "tier": "web"}, first.Labels.Set(), "a change leaves those of the past alone")
}

// Labels by LabelValues are those of a function that makes the same map for each write, for
// every reader and watch.
func TestLabelValues_SelectAsAMapDoes(t *testing.T) {
	asMap := serverConfig()
	asMap.LabelValues = nil
	asMap.Labels = func(s server) labels.Set {
		set := labels.Set{"region": s.Region, "tier": s.Tier}
		maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
		return set
	}
	drawn := rapid.Custom(func(t *rapid.T) server {
		return server{
			Name:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
			Region: rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region"),
			Tier:   rapid.SampledFrom([]string{"", "web", "db"}).Draw(t, "tier"),
			N:      rapid.IntRange(0, 1).Draw(t, "n"),
		}
	})
	selectors := []string{"tier=web", "tier!=web", "!tier", "region", "region in (eu,us),tier=db"}
	rapid.Check(t, func(rt *rapid.T) {
		puts := rapid.SliceOfN(drawn, 1, 30).Draw(rt, "puts")
		by := func(cfg engine.Config[server]) (seen []string) {
			e := newServers(rt, cfg)
			require.NoError(rt, e.WaitForRevision(t.Context(), 1))
			var last engine.Revision
			for _, s := range puts {
				o, err := e.Put(t.Context(), s)
				require.NoError(rt, err)
				last = max(last, o.Revision) // an equal value is not written
			}
			var watches []*engine.Watch[server]
			for _, selector := range selectors {
				list, err := e.List(t.Context(), engine.ListOptions{Labels: selector, Read: engine.NotOlderThan(last)})
				require.NoError(rt, err)
				for _, o := range list.Items {
					seen = append(seen, fmt.Sprint(selector, " lists ", o.Value, o.Labels))
				}
				w, err := e.Watch(t.Context(), engine.WatchOptions{Labels: selector, From: 1})
				require.NoError(rt, err)
				watches = append(watches, w)
			}
			drained := make(chan error, 1)
			go func() { drained <- e.Drain(t.Context()) }()
			for i, w := range watches {
				for ev, end := range w.Events() {
					if end == nil {
						seen = append(seen, fmt.Sprint(selectors[i], " sees ", ev, ev.Object.Labels))
					}
				}
			}
			require.NoError(rt, <-drained)
			return seen
		}
		require.Equal(rt, by(asMap), by(serverConfig()))
	})
}
