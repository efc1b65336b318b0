package corekinds

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// empty deletes the objects of all kinds in a namespace, and returns those kinds of which some are left, and whether one
// of them is closing, so that it is soon gone or replaced. The error joins those of the kinds whose objects cannot be
// deleted, or is errLetGo.
func (k *Kinds) empty(ctx context.Context, of *engine.Object[core.Namespace]) (left []string, closing bool, err error) {
	ctx = context.WithValue(ctx, emptying{}, true)
	var errs []error
	seen := map[schema.GroupResource]bool{}
	for _, r := range k.server.Resources() {
		info := r.Info()
		kind := info.Kind.GroupResource()
		if info.Kind.ClusterScoped || seen[kind] || !slices.Contains(info.Verbs, "deletecollection") {
			continue
		}
		seen[kind] = true // its other versions have the same objects
		switch some, err := k.emptyOf(ctx, r, of); {
		case errors.Is(err, errLetGo):
			return nil, false, err
		case errors.Is(err, engine.ErrEngineClosed):
			left, closing = append(left, kind.String()), true
		case some:
			left = append(left, kind.String())
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return left, closing, errors.Join(errs...)
}

// emptyOf deletes the objects of a kind in a namespace, and reports whether some are left. It deletes only what it has
// listed before it finds that the namespace is still there: another server may let that go meanwhile, and a client may
// make one of the same name, with objects of its own.
func (k *Kinds) emptyOf(ctx context.Context, r registry.Resource, of *engine.Object[core.Namespace]) (some bool, err error) {
	which := engine.ListOptions{Prefix: of.Key, Limit: emptyPage}
	for more := true; more; more = which.Continue != "" {
		page, err := r.List(ctx, which)
		switch {
		case errors.Is(err, engine.ErrExpired):
			return true, nil // the rest is of the next time
		case err != nil || page.Len() == 0:
			return false, err
		}
		if err := k.mustBe(ctx, of); err != nil {
			return false, err
		}
		if err := deleteAll(ctx, r, &page); err != nil {
			return false, err
		}
		which.Continue = page.Continue
	}
	page, err := r.List(ctx, engine.ListOptions{Prefix: of.Key, Limit: 1})
	return err == nil && page.Len() > 0, err
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
