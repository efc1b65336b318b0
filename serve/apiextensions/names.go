package apiextensions

import (
	"context"
	"fmt"

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
// until they are others, or it goes: also while no server serves it.
func accepted(o *object) *registry.Kind {
	names := part(part(o.Object, "status"), "acceptedNames")
	return &registry.Kind{
		Plural: text(names, "plural"), Singular: text(names, "singular"), ShortNames: texts(names, "shortNames"),
		Kind: text(names, "kind"), ListKind: text(names, "listKind"),
	}
}

// conflict returns why the kind of a definition cannot be served: another one of its group has
// one of its names. The message is "" if none has.
func (d *Definitions) conflict(ctx context.Context, o *object, wanted *registry.Kind) (reason, message string, err error) {
	owners, err := d.owners(ctx, o, wanted.Group)
	if err != nil {
		return "", "", err
	}
	for _, c := range claimsOf(wanted) {
		if owner, taken := owners[c.claim]; taken {
			reason, message = c.reason, fmt.Sprintf("%q is already in use by %s", c.name, owner)
		}
	}
	return reason, message, nil
}

// owners returns the claims of the group's other kinds, with the names of those. Servers that
// share storage may have given two definitions one name: both keep it.
func (d *Definitions) owners(ctx context.Context, o *object, group string) (map[claim]string, error) {
	own := map[claim]bool{}
	for _, c := range claimsOf(accepted(o)) {
		own[c.claim] = true
	}
	owners := map[claim]string{}
	note := func(owner string, k *registry.Kind, defined bool) {
		for _, c := range claimsOf(k) {
			if !defined || !own[c.claim] {
				owners[c.claim] = owner
			}
		}
	}
	for _, k := range d.server.Kinds() {
		owner := k.GroupResource().String()
		_, defined := d.kinds[owner]
		if k.Group == group && (!defined || owner != o.GetName()) {
			note(owner, &k, defined)
		}
	}
	all, err := d.store.Engine().List(ctx, engine.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, other := range all.Items {
		inGroup := text(part(other.Value.Object, "spec"), "group") == group
		if inGroup && other.Value.GetName() != o.GetName() && !isReleased(&other.Value) {
			note(other.Value.GetName(), accepted(&other.Value), true)
		}
	}
	return owners, nil
}
