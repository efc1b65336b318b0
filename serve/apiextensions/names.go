package apiextensions

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// claim is a name that one kind of a group may have: of a resource, or of objects and their lists.
type claim struct {
	ofObjects bool
	name      string
}

// claimed is a claim of a kind, and the reason that Kubernetes gives if another kind has it.
type claimed struct {
	claim
	reason string
}

// claimsOf returns the claims of a kind.
func claimsOf(k *registry.Kind) (all []claimed) {
	add := func(ofObjects bool, name, reason string) {
		if name != "" {
			all = append(all, claimed{claim{ofObjects, name}, reason})
		}
	}
	add(false, k.Plural, "PluralConflict")
	add(false, k.Singular, "SingularConflict")
	for _, short := range k.ShortNames {
		add(false, short, "ShortNamesConflict")
	}
	if k.Kind != "" {
		add(true, k.Kind, "KindConflict")
		add(true, k.ListGroupVersionKind().Kind, "ListKindConflict")
	}
	return all
}

// accepted returns the names that a definition has been given, by its status. They stay its own
// until the status has others or the definition is deleted, even while no server serves it.
func accepted(o *object) *registry.Kind {
	names := part(part(o.Object, "status"), "acceptedNames")
	return &registry.Kind{
		Plural: text(names, "plural"), Singular: text(names, "singular"), ShortNames: texts(names, "shortNames"),
		Kind: text(names, "kind"), ListKind: text(names, "listKind"),
	}
}

// refusal is why a definition is not served as it is.
type refusal struct {
	reason, message string
	// again is the time after which the reason may be gone, zero if only a change of definitions removes
	// it.
	again time.Duration
}

// retryNameAfter is the time after which a definition that has a name of one of the program's own kinds is tried
// again: the server does not say when it has stopped serving that kind.
const retryNameAfter = 10 * time.Second

// conflict returns why the kind of a definition cannot be served, nil if it can: another one of its group
// has one of its names.
func (d *Definitions) conflict(ctx context.Context, o *object, wanted *registry.Kind) (*refusal, error) {
	owners, err := d.owners(ctx, o, wanted.Group)
	if err != nil {
		return nil, err
	}
	var refused *refusal
	for _, c := range claimsOf(wanted) {
		by, taken := owners[c.claim]
		if !taken {
			continue
		}
		refused = &refusal{reason: c.reason, message: fmt.Sprintf("%q is already in use by %s", c.name, by.name)}
		if !by.defined {
			refused.again = retryNameAfter
		}
	}
	return refused, nil
}

// owner is a kind that has a name. It is the program's own unless it is defined.
type owner struct {
	name    string
	defined bool
}

// owners returns the claims of the group's other kinds, with those. Servers that share storage may
// have given two definitions one name: both keep it.
func (d *Definitions) owners(ctx context.Context, o *object, group string) (map[claim]owner, error) {
	own := map[claim]bool{}
	for _, c := range claimsOf(accepted(o)) {
		own[c.claim] = true
	}
	owners := map[claim]owner{}
	note := func(by owner, k *registry.Kind) {
		for _, c := range claimsOf(k) {
			if !by.defined || !own[c.claim] {
				owners[c.claim] = by
			}
		}
	}
	for _, k := range d.server.Kinds() {
		name := k.GroupResource().String()
		_, defined := d.kinds[name]
		if k.Group == group && (!defined || name != o.GetName()) {
			note(owner{name, defined}, &k)
		}
	}
	all, err := d.store.Engine().List(ctx, engine.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, other := range all.Items {
		inGroup := text(part(other.Value.Object, "spec"), "group") == group
		if inGroup && other.Value.GetName() != o.GetName() && !isReleased(&other.Value) {
			note(owner{other.Value.GetName(), true}, accepted(&other.Value))
		}
	}
	return owners, nil
}
