package serve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

func TestWrite_DeleteCollection(t *testing.T) {
	s := newServer(t)
	for i := range 4 {
		s.create(fmt.Sprintf("w%d", i), i%2)
	}
	a := s.do("DELETE", inDefault+"?labelSelector=size%3Ds1", "")
	require.Equal(t, 200, a.code, a.body)
	require.Equal(t, "w1 w3", a.str("items.0.metadata.name")+" "+a.str("items.1.metadata.name"))
	require.Equal(t, "w0 w2 <none>", strings.Join([]string{s.get(inDefault).str("items.0.metadata.name"), s.get(inDefault).str("items.1.metadata.name"), s.get(inDefault).str("items.2")}, " "))
}

// As in Kubernetes, a collection may take longer to delete than one object to write.
func TestWrite_DeleteCollectionHasTheTimeOfAList(t *testing.T) {
	left := map[registry.Operation]time.Duration{}
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		c.Limits.ReadTimeout, c.Limits.WriteTimeout = 10*time.Hour, time.Hour
		w.Admit = []registry.Admitter{registry.AdmitFunc(func(ctx context.Context, a *registry.Admission) error {
			end, _ := ctx.Deadline()
			left[a.Operation] = time.Until(end)
			return nil
		})}
	})
	s.create("a", 1)
	require.Equal(t, 200, s.do("DELETE", inDefault, "").code)
	require.LessOrEqual(t, left[registry.OperationCreate], time.Hour)
	require.Greater(t, left[registry.OperationDelete], time.Hour)
}

// A client that has left its namespace empty by mistake must not delete the objects of all.
func TestWrite_DeleteCollectionIsOfOneNamespace(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, query := range []string{"", "?fieldSelector=metadata.namespace%3Ddefault", "?fieldSelector=metadata.name%3Da", "?dryRun=All"} {
		a := s.do("DELETE", allWidgets+query, "")
		require.Equal(t, "405 MethodNotAllowed", fmt.Sprintf("%d %s", a.code, a.str("reason")), query)
		require.Equal(t, "GET, HEAD", a.header.Get("Allow"), query)
	}
	require.Equal(t, 200, s.get(inDefault+"/a").code)
}

// A client that watches from the answer's revision must not see its own deletions again.
func TestWrite_DeleteCollectionIsOfTheRevisionOfItsLastDeletion(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		s := newServer(t, func(c *registry.Config[Widget], _ *serve.Config) { c.Engine.NoCache = noCache })
		for _, name := range []string{"a", "b"} {
			s.create(name, 1)
		}
		deleted := s.do("DELETE", inDefault, "")
		require.NotEmpty(t, deleted.str("items.1.metadata.resourceVersion"))
		require.Equal(t, deleted.str("items.1.metadata.resourceVersion"), deleted.str("metadata.resourceVersion"))
		none := s.do("DELETE", inDefault, "")
		require.Equal(t, deleted.str("metadata.resourceVersion"), none.str("metadata.resourceVersion"))
	}
}

func TestWrite_DeleteCollectionKeepsToTheLimit(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		s.create(name, 1)
	}
	page := s.do("DELETE", inDefault+"?limit=1", "")
	require.Equal(t, "a <none>", page.str("items.0.metadata.name")+" "+page.str("items.1"))
	page = s.do("DELETE", inDefault+"?limit=2&continue="+page.str("metadata.continue"), "")
	require.Equal(t, "b c", page.str("items.0.metadata.name")+" "+page.str("items.1.metadata.name"))
	left := s.get(inDefault)
	require.Equal(t, "d <none>", left.str("items.0.metadata.name")+" "+left.str("items.1"))
}

// A list of the cache ignores its limit. A deletion does not, so its client has to be told of the others.
func TestWrite_DeleteCollectionOfTheCacheTellsOfTheOthers(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.create(name, 1)
	}
	s.cached()
	page := s.do("DELETE", inDefault+"?limit=2&resourceVersion=0", "")
	require.Equal(t, "a b <none>", strings.Join([]string{page.str("items.0.metadata.name"), page.str("items.1.metadata.name"), page.str("items.2")}, " "))
	page = s.do("DELETE", inDefault+"?limit=2&resourceVersion=0&continue="+page.str("metadata.continue"), "")
	require.Equal(t, "c <nil>", page.str("items.0.metadata.name")+" "+page.str("metadata.continue"), page.body)
}

// The request names no object, so the answer has to say which one has ended it.
func TestDeleteCollection_NamesTheObjectThatItStopsAt(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			if w, _ := a.Old.(*Widget); a.Operation == registry.OperationDelete && w.Name == "c" {
				return errors.New("it is in use")
			}
			return nil
		})}
	})
	for _, name := range []string{"a", "b", "c"} {
		s.create(name, 1)
	}
	uid := s.get(inDefault + "/a").str("metadata.uid")
	another := s.do("DELETE", inDefault, `{"preconditions":{"uid":"`+uid+`"}}`)
	require.Equal(t, "409 Conflict b", fmt.Sprintf("%d %s %s", another.code, another.str("reason"), another.str("details.name")))
	require.Contains(t, another.str("message"), `widgets.example.com "b": Precondition failed: UID in precondition: `+uid)
	refused := s.do("DELETE", inDefault, "")
	require.Equal(t, "403 Forbidden c", fmt.Sprintf("%d %s %s", refused.code, refused.str("reason"), refused.str("details.name")))
	require.Equal(t, `widgets.example.com "c" is forbidden: it is in use`, refused.str("message"))
}

// A deletion of many objects that is wrong in any way deletes none.
func TestDeleteCollection_RefusesWhatIsWrong(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, c := range []struct{ query, body, want string }{
		{"?dryRun=Some", "", "422 Invalid"},
		{"", `{"dryRun":["Some"]}`, "422 Invalid"},
		{"", `{"kind":"Pod"}`, "400 BadRequest"},
		{"", `{"gracePeriodSeconds":`, "400 BadRequest"},
		{"?gracePeriodSeconds=soon", "", "400 BadRequest"},
		{"?labelSelector=a%20b%20c", "", "400 BadRequest"},
		{"?fieldSelector=spec.none%3D1", "", "400 BadRequest"},
		{"?limit=-1", "", "400 BadRequest"},
		{"?continue=x", "", "400 BadRequest"},
		{"?resourceVersionMatch=Exact", "", "422 Invalid"},
		{"", `{"pad":"` + strings.Repeat("x", 4<<20) + `"}`, "413 RequestEntityTooLarge"},
	} {
		a := s.do("DELETE", inDefault+c.query, c.body)
		require.Equal(t, c.want, fmt.Sprintf("%d %s", a.code, a.str("reason")), "%s %.50s: %s", c.query, c.body, a.body)
	}
	require.Equal(t, 415, s.do("DELETE", inDefault, "kind: DeleteOptions", "Content-Type", "application/yaml").code)
	require.Equal(t, 200, s.get(inDefault+"/a").code)
}
