package serve

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// kinds is what a server serves at one time. It is immutable: the server replaces it by another
// one when kinds come or go, so that each request sees all of a change or nothing of it.
type kinds struct {
	providers []provided
	resources map[resourceName]*served
	// documents makes them at the first request for one: they describe all kinds, and many may
	// come before a client asks.
	documents func() *documents
}

// provided is a provider with the resources that it had when it was added.
type provided struct {
	by        Provider
	resources []*served
	uses      *uses
}

// resourceName is the name of a resource in a path.
type resourceName struct{ group, version, resource, subresource string }

// String returns the name of a kind, such as widgets.example.com/v1.
func (n resourceName) String() string {
	return schema.GroupResource{Group: n.group, Resource: n.resource}.String() + "/" + n.version
}

// served is a resource with its description, which requests share.
type served struct {
	resource registry.Resource
	info     *registry.Info
	uses     *uses // of its provider
}

// notFound is the resource of requests that name none which is served.
var notFound = &served{}

// provide asks a provider for its resources.
func provide(by Provider) provided {
	p := provided{by: by, uses: newUses(by)}
	for _, r := range by.Resources() {
		p.resources = append(p.resources, &served{r, r.Info(), p.uses})
	}
	return p
}

// newKinds returns the kinds of the providers. The error is an [*engine.ConfigError] for two of
// one name.
func newKinds(providers []provided, cfg *Config) (*kinds, error) {
	k := &kinds{providers: providers, resources: map[resourceName]*served{}}
	names := kindNames{}
	for _, p := range providers {
		for _, r := range p.resources {
			kind := &r.info.Kind
			name := resourceName{kind.Group, kind.Version, kind.Plural, r.info.Subresource}
			if k.resources[name] != nil {
				return nil, &engine.ConfigError{Field: "Resources", Problem: fmt.Sprintf("has %s/%s twice", kind.GroupResource(), kind.Version)}
			}
			k.resources[name] = r
			if err := names.add(r.info); err != nil {
				return nil, err
			}
		}
	}
	k.documents = sync.OnceValue(func() *documents {
		return newDocuments(slices.Collect(maps.Values(k.resources)), cfg)
	})
	return k, nil
}

// kindNames are the resources of the names that kinds and their lists have.
type kindNames map[schema.GroupVersionKind]string

// add refuses a kind whose name, or that of its list, another one has: clients could not tell
// the objects of the two apart.
func (k kindNames) add(info *registry.Info) error {
	if info.Subresource != "" {
		return nil
	}
	for _, name := range []schema.GroupVersionKind{info.Kind.GroupVersionKind(), info.Kind.ListGroupVersionKind()} {
		if other, taken := k[name]; taken {
			return &engine.ConfigError{Field: "Resources", Problem: fmt.Sprintf(
				"has %s and %s, which both have the kind %s in %s; give one of them another name", other, info.Kind.Plural, name.Kind, name.GroupVersion())}
		}
		k[name] = info.Kind.Plural
	}
	return nil
}

// Add serves the kinds of more providers: requests that arrive from now on find them, in
// discovery and OpenAPI, too, whose documents are made anew for the first client that asks.
//
// Errors: an [*engine.ConfigError] for a kind of a name that is served already, or for a nil
// provider; then nothing has changed.
func (s *Server) Add(of ...Provider) error { return s.change(nil, of) }

// Remove stops serving the kinds of the providers: requests that arrive from now on are
// answered with 404. Those that are being served go on, and watches last until their store is
// closed, so close it after [Server.WaitUnused]. A provider that is not served is not an error; one
// that cannot be compared stays, see [Provider].
func (s *Server) Remove(of ...Provider) {
	_ = s.change(of, nil) // fewer kinds have no names in common if all have none
}

// Replace is Remove of one provider and Add of another one in one step, for a kind that
// changes: no request finds neither of them. Close the old one's store after [Server.WaitUnused].
//
// Errors: as for Add.
func (s *Server) Replace(old, by Provider) error { return s.change([]Provider{old}, []Provider{by}) }

// Kinds returns the kinds that are served now, by group, version and plural.
func (s *Server) Kinds() []registry.Kind {
	var all []registry.Kind
	for _, r := range s.Resources() {
		all = append(all, r.Info().Kind)
	}
	return all
}

// Resources returns the resources that are served now, without subresources, by group, version and plural, for
// what has to do with the objects of all kinds. Calls of them are those of the program itself: they are not
// authorized, counted and bounded as requests are. One that is not served any more may be closed meanwhile.
func (s *Server) Resources() []registry.Resource {
	var all []registry.Resource
	for name, r := range s.kinds.Load().resources {
		if name.subresource == "" {
			all = append(all, r.resource)
		}
	}
	slices.SortFunc(all, func(a, b registry.Resource) int {
		one, other := &a.Info().Kind, &b.Info().Kind
		return cmp.Or(cmp.Compare(one.Group, other.Group), cmp.Compare(one.Version, other.Version), cmp.Compare(one.Plural, other.Plural))
	})
	return all
}

// change serves other kinds.
func (s *Server) change(without, with []Provider) error {
	if slices.ContainsFunc(with, usercode.IsNil) {
		return &engine.ConfigError{Field: "Resources", Problem: "has a nil Provider; give a registry.Store"}
	}
	var more []provided
	for _, p := range with {
		more = append(more, provide(p))
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	var stay []provided
	var leave []*uses
	for _, p := range s.kinds.Load().providers {
		if slices.ContainsFunc(without, func(gone Provider) bool { return isSame(gone, p.by) }) {
			leave = append(leave, p.uses)
		} else {
			stay = append(stay, p)
		}
	}
	next, err := newKinds(append(stay, more...), &s.cfg)
	if err != nil {
		return err
	}
	s.kinds.Store(next)
	for _, u := range leave { // after the store: a request that is refused by u finds next
		u.remove()
	}
	s.leaving = slices.DeleteFunc(append(s.leaving, leave...), (*uses).isOver)
	return nil
}

// unserved returns why the server does not serve all of its kinds; "" means that it does. It does once
// all have been read from storage, until one, or its storage, is closed. A kind that is added later, and
// not read yet, leaves those before it usable.
func (s *Server) unserved() string {
	var k *kinds
	var ended, closed []string
	var unread int
	for k != s.kinds.Load() { // else a kind that is not served any more may have been closed since
		k = s.kinds.Load()
		ended, closed, unread = k.unusable()
	}
	switch {
	case len(ended)+len(closed) > 0:
		return s.lost(ended, closed)
	case unread > 0 && !s.started.Load():
		return fmt.Sprintf("kinds that have not been read yet: %d", unread)
	}
	s.started.Store(true)
	return ""
}

// unusable returns the kinds whose storage has ended, those that are closed, and how many have not been
// read yet.
func (k *kinds) unusable() (ended, closed []string, unread int) {
	for name, r := range k.resources {
		if name.subresource != "" {
			continue
		}
		switch now := r.resource.Readiness(); {
		case now.Ended:
			ended = append(ended, name.String())
		case now.Closed:
			closed = append(closed, name.String())
		case !now.Ready && now.Generation == 0:
			unread++
		}
	}
	return ended, closed, unread
}

// lost logs which kinds are not served any more, and returns what clients see of that.
func (s *Server) lost(ended, closed []string) string {
	var shown, logged []string
	for _, of := range []struct {
		what  string
		kinds []string
	}{{"kinds whose storage has ended for good", ended}, {"kinds that are closed", closed}} {
		if len(of.kinds) > 0 {
			slices.Sort(of.kinds)
			shown = append(shown, fmt.Sprintf("%s: %d", of.what, len(of.kinds)))
			logged = append(logged, of.what+": "+strings.Join(of.kinds, ", "))
		}
	}
	s.unstored.log(s.log, "a health check fails", "check", checkStorage, "error", strings.Join(logged, "; "))
	return strings.Join(shown, "; ")
}

// isSame reports whether two providers are the same. Providers that cannot be compared never are.
func isSame(a, b Provider) bool {
	return a != nil && reflect.ValueOf(a).Comparable() && a == b
}
