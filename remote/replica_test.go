package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// What is written at the origin is read at the replica, at the same revisions and with
// the same identities.
func TestReplica_HasTheOriginsRevisions(t *testing.T) {
	origin := newServer(t)
	a, b := origin.create("a", 1), origin.create("b", 2)
	r := replica(t, origin.url)

	l, err := r.store.Engine().List(t.Context(), engine.ListOptions{Read: engine.NotOlderThan(b.Revision)})
	require.NoError(t, err)
	require.Len(t, l.Items, 2)
	require.Equal(t, b.Revision, l.Revision)
	require.Equal(t, a.Revision, l.Items[0].Revision)
	require.Equal(t, a.Value, l.Items[0].Value)

	require.Equal(t, "v1", origin.store.Resources()[0].Info().StorageVersion)
	require.Empty(t, r.store.Resources()[0].Info().StorageVersion, "the origin stores the objects")

	c := origin.resize("a", 3)
	_, _, err = origin.store.Delete(t.Context(), "default/b", registry.DeleteOptions{})
	require.NoError(t, err)
	last := origin.create("b", 4)
	events := follow(t, r.store.Engine(), b.Revision, last.Revision)
	require.Len(t, events, 3)
	require.Equal(t, fmt.Sprintf("[MODIFIED default/a@%d DELETED default/b@%d ADDED default/b@%d]", c.Revision, last.Revision-1, last.Revision), fmt.Sprint(events))
	require.Equal(t, 1, events[0].Prev.Value.Spec.Size)
	require.NotEqual(t, events[1].Object.Created, events[2].Object.Created, "it is another object")
	require.EqualValues(t, 2, origin.lists.Load(), "one at the oldest revision, when it is known")
}

// Values that an origin emits are not state: a replica has the state, and a revision after them.
func TestReplica_HasNothingOfWhatItsOriginEmits(t *testing.T) {
	origin := newServer(t)
	before := origin.create("a", 1)
	r := replica(t, origin.url)
	require.NoError(t, r.store.Engine().WaitForRevision(t.Context(), before.Revision))
	_, err := origin.store.Engine().Emit(t.Context(), widget("passing", 1))
	require.NoError(t, err)
	last := origin.create("b", 2)
	events := follow(t, r.store.Engine(), before.Revision, last.Revision)
	require.Equal(t, fmt.Sprintf("[ADDED default/b@%d]", last.Revision), fmt.Sprint(events))
	emitted, err := origin.store.Engine().Emit(t.Context(), widget("passing", 1))
	require.NoError(t, err)
	l, err := r.store.Engine().List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, emitted, l.Revision)
	_, err = r.store.Engine().Emit(t.Context(), widget("passing", 1))
	require.ErrorIs(t, err, engine.ErrUnsupported)
}

// A replica that starts has the history that its origin has, so that clients of the one
// before it resume there without a list.
func TestReplica_StartsWithTheOriginsHistory(t *testing.T) {
	origin := newServer(t)
	before := origin.create("a", 1)
	first := origin.resize("a", 2)
	second := origin.resize("a", 3)

	events := follow(t, replica(t, origin.url).store.Engine(), before.Revision, second.Revision)
	require.Equal(t, fmt.Sprintf("[MODIFIED default/a@%d MODIFIED default/a@%d]", first.Revision, second.Revision), fmt.Sprint(events))
	require.Equal(t, 1, events[0].Prev.Value.Spec.Size)

	leaf := replica(t, replica(t, origin.url).url)
	require.Len(t, follow(t, leaf.store.Engine(), before.Revision, second.Revision), 2, "through another replica")

	without := replica(t, origin.url, func(c *remote.Config) { c.NoHistory = true })
	require.NoError(t, without.store.Engine().WaitForRevision(t.Context(), second.Revision))
	_, err := without.store.Engine().Watch(t.Context(), engine.WatchOptions{From: before.Revision})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// A replica of an origin that lists no past state, with whatever refusal, starts at the
// newest one.
func TestReplica_StartsWithoutHistoryIfTheOriginListsNoPastState(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			origin := newServer(t)
			last := origin.create("a", 1)
			before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.URL.Query().Get("resourceVersionMatch") == "Exact" {
					http.Error(w, "no past states", code)
					return
				}
				next.ServeHTTP(w, r)
			})
			b := backendAt(t, before.URL)
			r := newServer(t, func(cfg *registry.Config[Widget]) {
				cfg.Engine.Backend, cfg.Engine.Backoff = b, engine.Backoff{Initial: time.Millisecond, Max: time.Millisecond}
			})
			require.Eventually(t, func() bool { return r.store.Engine().WaitForRevision(t.Context(), last.Revision) == nil }, patience, time.Millisecond)
			o, err := r.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, last.Revision, o.Revision)
		})
	}
}

// An oldest revision that is not a number is unknown, also one that is too large for any.
func TestReplica_OldestRevisionsOutOfRangeAreUnknown(t *testing.T) {
	for _, oldest := range []string{"18446744073709551616", "-1", "x", ""} {
		status := fmt.Sprintf(`{"kind":"Status","code":410,"reason":"Expired","details":{"causes":[{"reason":%q,"message":%q}]}}`, registry.CauseOldestRevision, oldest)
		_, err := backendAt(t, frames(t, "410 "+status).URL).List(t.Context(), backend.ListOptions{Revision: 1})
		var expired *store.ExpiredError
		require.ErrorAs(t, err, &expired)
		require.Zero(t, expired.Oldest, oldest)
	}
}

// Over the wire a replica answers as its origin does.
func TestReplica_AnswersAsItsOriginDoes(t *testing.T) {
	origin := newServer(t)
	r := replica(t, origin.url)
	send := func(method, path, media, body string) (int, string) {
		resp, text := r.send(method, path, media, body)
		return resp.StatusCode, text
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	const json, merge = "application/json", "application/merge-patch+json"

	code, _ := send("POST", "", json, `{"metadata":{"name":"a"},"spec":{"size":1}}`)
	require.Equal(t, 201, code)
	code, text := send("POST", "", json, `{"metadata":{"name":"a"}}`)
	require.Equal(t, 409, code)
	require.Contains(t, text, "AlreadyExists")
	code, text = send("POST", "", json, `{"metadata":{"name":"b"},"spec":{"size":-1}}`)
	require.Equal(t, 422, code)
	require.Contains(t, text, "spec.size")
	code, text = send("PATCH", "/a", merge, `{"spec":{"size":9}}`)
	require.Equal(t, 200, code)
	require.Contains(t, text, `"size":9`)
	code, text = send("PUT", "/a", json, `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"size":1}}`)
	require.Equal(t, 409, code, text)
	code, _ = send("DELETE", "/a", json, "")
	require.Equal(t, 200, code)
	code, _ = send("DELETE", "/a", json, "")
	require.Equal(t, 404, code)
}

// A tree of three levels: a watch goes on at any of its servers from where it stood at
// another.
func TestReplica_ClientsMoveWithinATree(t *testing.T) {
	origin := newServer(t)
	first := origin.create("a", 1)
	middle := replica(t, origin.url)
	leaf := replica(t, middle.url)
	for _, s := range []*server{middle, leaf} { // the leaf may have listed what the middle one has from the origin
		require.NoError(t, s.store.Engine().WaitForRevision(t.Context(), first.Revision))
	}

	o, err := leaf.store.Create(t.Context(), widget("b", 2), registry.WriteOptions{})
	require.NoError(t, err, "a write passes two servers")
	want := []string{}
	for i := range 10 {
		want = append(want, fmt.Sprintf("MODIFIED default/b@%d", origin.resize("b", 10+i).Revision))
	}
	last := origin.create("end", 1)
	want = append(want, fmt.Sprintf("ADDED default/end@%d", last.Revision))
	at := o.Revision
	var got []string
	for i, s := range []*server{leaf, origin, middle, leaf} {
		until := o.Revision + engine.Revision(3*i+2)
		if i == 3 {
			until = last.Revision
		}
		for _, ev := range follow(t, s.store.Engine(), at, min(until, last.Revision)) {
			if ev.Revision > min(until, last.Revision) {
				break
			}
			got = append(got, ev.String())
		}
		at = min(until, last.Revision)
	}
	require.Equal(t, want, got)
}

// A replica returns the origin's refusals as distinct errors, also through another
// replica.
func TestReplica_ErrorsAreThoseOfTheOrigin(t *testing.T) {
	origin := newServer(t)
	leaf := replica(t, replica(t, origin.url).url)
	_, err := leaf.store.Create(t.Context(), widget("bad", -1), registry.WriteOptions{})
	var status *apierrors.StatusError
	require.True(t, errors.As(err, &status))
	require.Equal(t, metav1.StatusReasonInvalid, status.ErrStatus.Reason)
	require.Equal(t, "spec.size", status.ErrStatus.Details.Causes[0].Field)
	var invalid *registry.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.EqualError(t, invalid, `Widget "bad" is invalid: spec.size: Invalid value: -1: must not be negative`)
	require.Equal(t, field.ErrorTypeInvalid, invalid.Errors[0].Type)
	_, err = leaf.store.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: "1"}}, registry.WriteOptions{})
	var bad *registry.BadRequestError
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, bad, "resourceVersion should not be set on objects to be created")
	require.NotErrorAs(t, err, &invalid)
	_, err = leaf.store.Engine().Create(t.Context(), widget("plain", 1))
	require.NoError(t, err, "an engine writes to its backend")
	o, err := leaf.store.Engine().Get(t.Context(), "default/plain", engine.GetOptions{})
	require.NoError(t, err)
	_, err = leaf.store.Engine().Delete(t.Context(), "default/plain", engine.DeleteOptions{})
	require.NoError(t, err)
	_, err = origin.store.Engine().Get(t.Context(), o.Key, engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// A page of which the origin does not say how many objects follow it, as one of a selection, is
// not the last, and a replica does not tell its clients otherwise.
func TestReplica_RemainingItemsThatAreUnknownStayUnknown(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	origin := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		w := widget(name, 1)
		w.Labels = map[string]string{"shown": "yes"}
		_, err := origin.store.Create(t.Context(), w, registry.WriteOptions{})
		require.NoError(t, err)
	}
	for labels, want := range map[string]int{"": 2, "shown=yes": -1} {
		b := backendAt(t, origin.url, func(c *remote.Config) { c.Labels = labels })
		page, err := b.List(t.Context(), backend.ListOptions{Limit: 1})
		require.NoError(t, err)
		require.NotEmpty(t, page.Continue)
		require.Equal(t, want, page.Remaining, "of %q", labels)

		near := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend, cfg.Engine.NoCache = b, true })
		resp, err := http.Get(near.url + "/apis/example.com/v1/widgets?limit=1")
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), `"continue":`)
		require.Equal(t, want >= 0, strings.Contains(string(text), `"remainingItemCount":2`), "of %q: %s", labels, text)
		require.Equal(t, want >= 0, strings.Contains(string(text), "remainingItemCount"), "of %q: %s", labels, text)
	}
}

// A client of a replica is told when to come back as the origin tells it, or a proxy before the
// origin, also through another replica.
func TestReplica_PassesRetryAfterOn(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	origin := newServer(t)
	origin.create("a", 1)
	var busy atomic.Pointer[func(w http.ResponseWriter)]
	before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if answer := busy.Load(); answer != nil && r.URL.Query().Get("watch") == "" {
			(*answer)(w)
			return
		}
		next.ServeHTTP(w, r)
	})
	near := replica(t, before.URL)
	far := replica(t, near.url)
	uncached := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Engine.Backend, cfg.Engine.NoCache = backendAt(t, before.URL), true
	})
	for _, s := range []*server{near, far} {
		_, err := s.store.Engine().List(t.Context(), engine.ListOptions{})
		require.NoError(t, err)
	}
	status := func(w http.ResponseWriter, err *apierrors.StatusError) {
		s := err.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(int(s.Code))
		_ = json.NewEncoder(w).Encode(s)
	}
	for name, answer := range map[string]func(w http.ResponseWriter){
		"429": func(w http.ResponseWriter) { status(w, apierrors.NewTooManyRequests("it is busy", 21)) },
		"500": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "21")
			status(w, apierrors.NewInternalError(errors.New("the Status does not tell it")))
		},
		"503": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "21")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "<html>busy</html>")
		},
	} {
		busy.Store(&answer)
		for _, c := range []struct {
			to                        *server
			method, path, media, body string
		}{
			{near, "POST", "", "application/json", `{"metadata":{"name":"b"}}`},
			{near, "PUT", "/a", "application/json", `{"metadata":{"name":"a"}}`},
			{near, "PATCH", "/a", "application/merge-patch+json", `{"spec":{"size":2}}`},
			{near, "PATCH", "/a?fieldManager=me", "application/apply-patch+yaml", `{"apiVersion":"example.com/v1","kind":"Widget"}`},
			{near, "DELETE", "/a", "application/json", ""},
			{far, "POST", "", "application/json", `{"metadata":{"name":"b"}}`},
			{uncached, "GET", "", "", ""},
			{uncached, "GET", "/a", "", ""},
		} {
			resp, text := c.to.send(c.method, c.path, c.media, c.body)
			require.Equal(t, name+" 21", fmt.Sprintf("%d %s", resp.StatusCode, resp.Header.Get("Retry-After")), "%s %s: %s", c.method, c.path, text)
		}
		busy.Store(nil)
	}
}
