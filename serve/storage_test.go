package serve_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// Each list, and each watch that continues from a revision, says which storage the revision
// is of, in every form of the answer, and even if the revision is too old.
func TestStorageHeader_OfListsAndWatches(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	rev := s.create("b", 2)
	timeline, err := s.widgets.Engine().Timeline(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, timeline.Store())
	id := url.PathEscape(timeline.Store())

	first := s.get(inDefault + "?limit=1")
	for _, path := range []string{
		inDefault, allWidgets, inDefault + "?limit=1", inDefault + "?limit=1&continue=" + first.str("metadata.continue"),
		inDefault + "?resourceVersion=0", inDefault + "?resourceVersion=" + rev, inDefault + "?resourceVersionMatch=Exact&resourceVersion=" + rev,
		inDefault + "?labelSelector=size%3Ds99", inDefault + "?fieldSelector=metadata.name%3Da",
	} {
		for _, form := range []string{"application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"} {
			a := s.get(path, "Accept", form)
			require.Equal(t, 200, a.code, a.body)
			require.Equal(t, id, a.header.Get(registry.StorageHeader), "%s as %s", path, form)
		}
	}
	for _, form := range []string{"application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "text/event-stream"} {
		require.Equal(t, id, s.watch(inDefault+"?watch=1&resourceVersion="+rev, "Accept", form).resp.Header.Get(registry.StorageHeader), form)
	}
	require.Equal(t, id, s.watch(inDefault+"?watch=1", "Accept", "text/event-stream", "Last-Event-ID", rev).resp.Header.Get(registry.StorageHeader))

	newest, err := s.widgets.Engine().Backend().Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.widgets.Engine().Compact(t.Context(), newest))
	require.NoError(t, s.widgets.Engine().WaitForRevision(t.Context(), newest))
	for form, code := range map[string]int{"application/json": 200, "text/event-stream": 410} {
		expired := s.get(inDefault+"?watch=1&resourceVersion=1", "Accept", form)
		require.Equal(t, code, expired.code, expired.body)
		require.Contains(t, expired.body, `"reason":"Expired"`)
		require.Equal(t, id, expired.header.Get(registry.StorageHeader))
	}
}

// replaced is a kind whose storage is replaced just after it was asked for its timeline.
type replaced struct {
	registry.Resource
	timeline func(context.Context) (engine.Timeline, error) // of the storage before
}

func (r *replaced) Resources() []registry.Resource { return []registry.Resource{r} }

func (r *replaced) Timeline(ctx context.Context) (engine.Timeline, error) { return r.timeline(ctx) }

// A revision of another storage means nothing here. A watch from it would leave out changes, or never have
// any.
func TestStorageHeader_IsOfTheStorageThatIsWatched(t *testing.T) {
	widgets, before := newLater(t), newLater(t)
	kind := &replaced{widgets.Resources()[0], before.Engine().Timeline}
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Resources = append(c.Resources, kind) })
	o, err := widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}, registry.WriteOptions{})
	require.NoError(t, err)
	from := laterPath + "?watch=1&timeoutSeconds=1&resourceVersion=" + o.Revision.String()
	f, _ := s.watch(from).next()
	require.Equal(t, "ERROR 410", f.Type+" "+f.str("code"))

	kind.timeline = func(context.Context) (engine.Timeline, error) { return engine.Timeline{}, engine.ErrNotReady }
	require.Equal(t, 429, s.get(from).code)
}

// An answer that no client continues from does not tell the storage.
func TestStorageHeader_IsNotOfOtherAnswers(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for path, code := range map[string]int{
		inDefault + "/a": 200, inDefault + "/none": 404, inDefault + "?resourceVersion=x": 400, "/apis/example.com/v1": 200, "/version": 200,
		inDefault + "?limit=1&continue=nonsense": 400,
	} {
		a := s.get(path)
		require.Equal(t, code, a.code, "%s: %s", path, a.body)
		require.NotContains(t, a.header, http.CanonicalHeaderKey(registry.StorageHeader), path)
	}
	require.NotContains(t, s.watch(inDefault+"?watch=1").resp.Header, http.CanonicalHeaderKey(registry.StorageHeader), "the state comes first")
}
