package corekinds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// emptyPage is how many objects are listed at once.
const emptyPage = 10_000

// errLetGo: the namespace that is being emptied is gone, or another one has its name.
var errLetGo = errors.New("the namespace was let go")

// leftovers are the objects that are left in a namespace.
type leftovers struct {
	// objects are how many there are of each kind, zero for one that is closing; finalizers are how many have each.
	objects, finalizers map[string]int
	// closing: a kind is closing, so that it is soon gone or replaced.
	closing bool
}

// add counts objects of a kind.
func (l *leftovers) add(kind string, page *registry.Page) {
	l.objects[kind] += page.Len()
	for i := range page.Len() {
		for _, name := range page.Item(i).Meta().GetFinalizers() {
			l.finalizers[name]++
		}
	}
}

// counted returns numbers of objects as a condition lists them, each with its name and a word before it.
func counted(numbers map[string]int, word string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[name]; n > 0 {
			name = fmt.Sprintf("%s %s %d resource instances", name, word, n)
		}
		texts = append(texts, name)
	}
	return strings.Join(texts, ", ")
}

// empty deletes the objects of all kinds in a namespace, and returns those that are left. The error joins those of the
// kinds whose objects cannot be deleted, or is errLetGo.
func (k *Kinds) empty(ctx context.Context, of *engine.Object[core.Namespace]) (*leftovers, error) {
	ctx = context.WithValue(ctx, emptying{}, true)
	left := &leftovers{objects: map[string]int{}, finalizers: map[string]int{}}
	var errs []error
	seen := map[schema.GroupResource]bool{}
	for _, r := range k.server.Resources() {
		info := r.Info()
		kind := info.Kind.GroupResource()
		if info.Kind.ClusterScoped || seen[kind] || !slices.Contains(info.Verbs, "deletecollection") {
			continue
		}
		seen[kind] = true // its other versions have the same objects
		switch err := k.emptyOf(ctx, r, of, left); {
		case errors.Is(err, errLetGo):
			return nil, err
		case errors.Is(err, engine.ErrEngineClosed):
			left.objects[kind.String()], left.closing = 0, true
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return left, errors.Join(errs...)
}

// emptyOf deletes the objects of a kind in a namespace, and counts those that are left. It deletes only what it has
// listed before it finds that the namespace is still there: another server may let that go meanwhile, and a client may
// make one of the same name, with objects of its own.
func (k *Kinds) emptyOf(ctx context.Context, r registry.Resource, of *engine.Object[core.Namespace], left *leftovers) error {
	some := false
	err := eachPage(ctx, r, of.Key, func(page *registry.Page) error {
		some = true
		if err := k.mustBe(ctx, of); err != nil {
			return err
		}
		return deleteAll(ctx, r, page)
	})
	if err != nil || !some {
		return err
	}
	return eachPage(ctx, r, of.Key, func(page *registry.Page) error {
		left.add(r.Info().Kind.GroupResource().String(), page)
		return nil
	})
}

// eachPage calls a function with the objects of a kind in a namespace, page by page, until that fails, or the state
// that the pages are of is no longer kept: what has not come is for the next time.
func eachPage(ctx context.Context, r registry.Resource, namespace string, call func(*registry.Page) error) error {
	which := engine.ListOptions{Prefix: namespace, Limit: emptyPage}
	for more := true; more; more = which.Continue != "" {
		page, err := r.List(ctx, which)
		switch {
		case errors.Is(err, engine.ErrExpired) && which.Continue != "":
			return nil
		case err != nil || page.Len() == 0:
			return err
		}
		if err := call(&page); err != nil {
			return err
		}
		which.Continue = page.Continue
	}
	return nil
}

// mustBe returns errLetGo unless a namespace is still there.
func (k *Kinds) mustBe(ctx context.Context, of *engine.Object[core.Namespace]) error {
	now, err := k.namespaces.Engine().Get(ctx, of.Key, engine.GetOptions{})
	if errors.Is(err, engine.ErrNotFound) || err == nil && now.Value.UID != of.Value.UID {
		return errLetGo
	}
	return err
}

// deleteAll deletes the objects of a page, unless they are gone, or are others by now. As in Kubernetes no object waits
// for those that it owns, since they go as well.
func deleteAll(ctx context.Context, r registry.Resource, page *registry.Page) error {
	for i := range page.Len() {
		it := page.Item(i)
		_, _, err := r.Delete(ctx, it.Key(), registry.DeleteOptions{UID: string(it.Meta().GetUID()), Propagation: metav1.DeletePropagationBackground})
		if orGone(err) != nil || errors.As(err, new(*registry.AdmissionError)) {
			return err
		}
	}
	return nil
}
