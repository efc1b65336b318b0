package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// sized lets selectors name the size of a widget.
func sized(cfg *registry.Config[Widget]) {
	cfg.Fields = map[string]func(*Widget) string{"spec.size": func(w *Widget) string { return fmt.Sprint(w.Spec.Size) }}
}

// Get finds what a list has, and nothing else, whatever selects the objects.
func TestGet_FindsWhatAListHas(t *testing.T) {
	origin := newServer(t, sized)
	for _, key := range []string{"default/a", "default/b", "other/a"} {
		namespace, name := registry.SplitKey(key)
		w := Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}, Spec: WidgetSpec{Size: len(namespace)}}
		_, err := origin.store.Create(t.Context(), w, registry.WriteOptions{})
		require.NoError(t, err)
	}
	for _, c := range []struct {
		name string
		edit func(*remote.Config)
		has  []string
	}{
		{"all", func(*remote.Config) {}, []string{"default/a", "default/b", "other/a"}},
		{"a namespace", func(c *remote.Config) { c.Namespace = "default" }, []string{"default/a", "default/b"}},
		{"labels", func(c *remote.Config) { c.Labels = "name in (a)" }, []string{"default/a", "other/a"}},
		{"a field", func(c *remote.Config) { c.Fields = "spec.size=5" }, []string{"other/a"}},
		{"a name", func(c *remote.Config) { c.Fields = "metadata.name=b" }, []string{"default/b"}},
		{"all of them", func(c *remote.Config) { c.Namespace, c.Labels, c.Fields = "default", "name!=b", "spec.size!=5" }, []string{"default/a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := backendAt(t, origin.url, c.edit)
			list, err := b.List(t.Context(), backend.ListOptions{})
			require.NoError(t, err)
			var listed, found []string
			for _, o := range list.Items {
				listed = append(listed, o.Key)
			}
			for _, key := range []string{"a", "default/a", "default/b", "default/c", "other/a"} {
				o, err := b.Get(t.Context(), key)
				if err != nil {
					require.ErrorIs(t, err, store.ErrNotFound)
					require.ErrorContains(t, err, key)
					continue
				}
				require.Equal(t, key, o.Key)
				found = append(found, key)
			}
			require.Equal(t, c.has, listed)
			require.Equal(t, c.has, found)
		})
	}
}

// A replica of a part returns the same from its cache and from its origin, and updates and
// deletes nothing else.
func TestReplica_OfAPartHasNothingElse(t *testing.T) {
	origin := newServer(t, sized)
	other := origin.create("b", 2)
	last := origin.create("a", 1)
	r := replica(t, origin.url, func(c *remote.Config) { c.Fields = "spec.size=1" })
	e := r.store.Engine()
	for _, read := range []engine.Read{engine.Cached(), engine.Latest()} {
		require.NoError(t, e.WaitForRevision(t.Context(), last.Revision))
		_, err := e.Get(t.Context(), "default/a", engine.GetOptions{Read: read})
		require.NoError(t, err)
		_, err = e.Get(t.Context(), "default/b", engine.GetOptions{Read: read})
		require.ErrorIs(t, err, engine.ErrNotFound)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		resp, text := r.send(method, "/b", "application/json", `{"metadata":{"name":"b"},"spec":{"size":9}}`)
		require.Equal(t, http.StatusNotFound, resp.StatusCode, text)
	}
	o, err := origin.store.Engine().Get(t.Context(), "default/b", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, other.Revision, o.Revision)
}

// A server that pages by itself may have the object on any page.
func TestGet_OfASelectionReadsAllPages(t *testing.T) {
	var asked []string
	s := front(t, "http://origin.localhost", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		asked = append(asked, r.URL.Query().Get("fieldSelector"))
		if r.URL.Query().Get("continue") == "" {
			_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"5","continue":"second"},"items":[]}`)
			return
		}
		_, _ = io.WriteString(w, pageOf("a", 5, ""))
	})
	b := backendAt(t, s.URL, func(c *remote.Config) { c.Labels = "x=y" })
	o, err := b.Get(t.Context(), "default/a")
	require.NoError(t, err)
	require.Equal(t, store.Revision(3), o.Revision)
	require.Equal(t, []string{"metadata.name=a", "metadata.name=a"}, asked)
}
